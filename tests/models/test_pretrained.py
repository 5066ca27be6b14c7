"""A model trained elsewhere gives the library's own logits, and what is none is refused by name."""

import json
import math
import shutil

import numpy as np
import own_models
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from manybody import models
from manybody.data import own_tokenizer
from manybody.io import checkpoints
from manybody.io.atomic import ArtifactError, read_json
from manybody.io.manifest import Manifest
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences, write
from manybody.measure.losses import evaluate
from manybody.models import stored
from manybody.models.objectives import sequence_sums
from manybody.models.pretrained import layout, series as checkpoint_series
from manybody.models.pretrained.network import Pretrained
from manybody.sampling.metropolis import sample
from manybody.training.series import adopt

VOCABULARY, LENGTH = 120, 12
SPECIAL = {"special": [0, 1, 2, 3, 4], "mask": 4, "vocabulary": VOCABULARY, "tokens": "theirs"}
MASKED = {"architecture": "pretrained", "objective": "masked", "audit": True}
CAUSAL = {"architecture": "pretrained", "objective": "next-token", "audit": True}


def tokens(count, seed=0):
    """Sequences with a special token at either end."""
    drawn = np.random.default_rng(seed).integers(5, VOCABULARY, (count, LENGTH))
    drawn[:, 0], drawn[:, -1] = 2, 3
    return torch.from_numpy(drawn)


def described(objective, **changes):
    sizes = {"vocabulary": VOCABULARY, "length": LENGTH, "objective": objective, "config": {}}
    return {"architecture": "pretrained", **sizes, "special": [0, 1, 2, 3, 4], "mask": 4} | changes


@pytest.fixture
def text(tmp_path):
    write(tmp_path / "text.parquet", tokens(40).numpy(), VOCABULARY, {"special": SPECIAL})
    return tmp_path / "text.parquet"


@pytest.fixture
def adopted(tmp_path, text):
    def of(entry, name="run"):
        where = tmp_path / "series" / f"{name}.json"
        about = {"source": "text", "model": name}
        return adopt(entry, text, tmp_path / name, where, tmp_path / "downloads", 0, about)

    return of


@pytest.fixture
def bert(tmp_path):
    own_models.model().save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


# esm adds to the logits after its output layer, gemma2 bounds them.
@pytest.mark.parametrize("kind", ["bert", "roberta", "esm"])
def test_masked_logits_are_those_of_the_library(kind, tmp_path):
    library = own_models.model(
        kind,
        **({"mask_token_id": 4, "position_embedding_type": "rotary"} if kind == "esm" else {}),
    )
    # Some files lack the frequencies of rotary positions.
    library.save_pretrained(
        tmp_path / kind,
        state_dict={n: one for n, one in library.state_dict().items() if "inv_freq" not in n},
    )
    model = Pretrained.read(tmp_path / kind, kind, described("masked"))
    given, rows = tokens(3), torch.tensor([0, 1, 2, 2])
    positions = torch.tensor([1, 5, 7, 10])
    hidden = given[rows].clone()
    hidden[range(4), positions] = 4
    with torch.no_grad():
        expected = library(input_ids=hidden).logits[range(4), positions]
        found = model.masked_logits(given, rows, positions)
        features = model.masked_features(given, rows, positions)
        chosen = model.head_rows(features, given[rows, positions])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        chosen, expected[range(4), given[rows, positions]], rtol=1e-5, atol=1e-5
    )
    assert model.direct == (kind != "esm")


@pytest.mark.parametrize("kind", ["gpt_neox", "llama", "gemma2"])
def test_next_token_logits_are_those_of_the_library(kind, tmp_path):
    sizes = {"num_key_value_heads": 1, "head_dim": 8, "final_logit_softcapping": 1.0}
    library = own_models.model(kind, 128, **(sizes if kind == "gemma2" else {}))  # 8 more rows
    library.save_pretrained(tmp_path / kind)
    # With a mark of byte order, as some editors write.
    (tmp_path / kind / "config.json").write_text(
        "\ufeff" * (kind == "llama") + library.config.to_json_string()
    )
    model = Pretrained.read(tmp_path / kind, kind, described("next-token"))
    with torch.no_grad():
        expected = library(input_ids=tokens(3)).logits[..., :VOCABULARY]
        torch.testing.assert_close(model(tokens(3)), expected, rtol=1e-5, atol=1e-5)
    assert model.direct == (kind != "gemma2")
    assert model.about.causal


@pytest.mark.parametrize(("bound", "direct"), [(1e6, True), (1e5, False)])
def test_what_follows_the_output_layer_may_differ_by_a_small_part_of_the_logits(
    bound, direct, tmp_path
):
    """Of features f of some thousands the share (f / bound)^2 / 3 is cut off."""
    sizes = {"num_key_value_heads": 1, "head_dim": 8, "final_logit_softcapping": bound}
    library = own_models.model("gemma2", **sizes)
    with torch.no_grad():
        library.model.norm.weight.add_(1000)
        assert 200 < library(input_ids=tokens(1)).logits.abs().max() < 2000
    library.save_pretrained(tmp_path)
    assert Pretrained.read(tmp_path, "gemma2", described("next-token")).direct == direct


@pytest.mark.parametrize(
    ("kind", "sizes", "numbers"),
    [
        ("bert", {"intermediate_size": 32}, 4 * 32),
        ("bert", {"intermediate_size": 8}, 4 * 16),  # the hidden layers are the wider ones
        ("bert", {"intermediate_size": 1, "hidden_size": 2}, VOCABULARY // LENGTH),
        ("gpt_neox", {"intermediate_size": 32}, 4 * 32),
        ("gpt_neox", {"intermediate_size": 8}, VOCABULARY),
    ],
)
def test_the_activations_are_those_of_the_widest_layer_or_of_the_logits(kind, sizes, numbers):
    library = own_models.model(kind, **sizes)
    objective = "masked" if kind == "bert" else "next-token"
    made = Pretrained(library, VOCABULARY, LENGTH, objective, {}, mask=4)
    assert made.activation_size == LENGTH * numbers


def test_positions_are_tried_without_padding_which_has_none(tmp_path):
    own_models.model("roberta", max_position_embeddings=LENGTH).save_pretrained(tmp_path)
    with pytest.raises(Refusal, match=r"cannot read 12 tokens.*lower that"):
        Pretrained.read(tmp_path, "roberta", described("masked"))


def test_special_tokens_are_not_predicted(bert):
    model = Pretrained.read(bert, "bert", described("masked"))
    sums = sequence_sums(model, tokens(4))
    assert sums.predictions.tolist() == [LENGTH - 2] * 4
    rows = torch.arange(4).repeat_interleave(LENGTH - 2)
    places = torch.arange(1, LENGTH - 1).repeat(4)
    with torch.no_grad():
        logits = model.masked_logits(tokens(4), rows, places)
    losses = torch.nn.functional.cross_entropy(logits, tokens(4)[rows, places], reduction="none")
    torch.testing.assert_close(sums.loss_sum, losses.view(4, -1).sum(1).double(), rtol=1e-5, atol=0)


@pytest.mark.parametrize(("energy", "gauge"), [("raw", "mean"), ("norm", "none")])
def test_its_chains_leave_special_tokens_where_they_are(bert, tmp_path, energy, gauge):
    model, starts = Pretrained.read(bert, "bert", described("masked")), tokens(6)
    starts[:, 4] = 3
    settings = {"energy": energy, "gauge": gauge, "sweeps": [3], "order": "permuted", "seed": 5}
    sample(model, starts.numpy(), tmp_path / "clone", about={}, **settings)
    clone = Manifest.read(tmp_path / "clone" / "manifest.json", "clones")
    found = Sequences.open(clone.file("sweep-3.parquet")).tokens
    held = np.isin(starts.numpy(), SPECIAL["special"])
    assert (found[held] == starts.numpy()[held]).all()
    assert not np.isin(found[~held], SPECIAL["special"]).any()
    assert (found != starts.numpy()).mean() > 0.3


def test_one_model_is_a_run_with_one_checkpoint(bert, adopted, text):
    manifest = adopted({**MASKED, "weights": str(bert)})
    run = Manifest.read(manifest, "model")
    assert run.about["steps"] == [0]
    assert run.about["suspects"] == {}
    assert models.about(stored.load_model(manifest).description).label == "Bert 2 × 16"
    assert (evaluate(manifest, {"text": (text, 10)})["predictions"] == LENGTH - 2).all()
    assert checkpoints.history(manifest)["loss"].notna().all()


def series(folder, count=3, shards=False):
    """Checkpoints 100, 200, ... of a causal model, with weights that go one way."""
    one, other = (own_models.model("gpt_neox", VOCABULARY, seed) for seed in (0, 1))
    ends = one.state_dict(), other.state_dict()
    for number in range(count):
        part = number / count
        with torch.no_grad():
            for name, value in one.named_parameters():
                value.copy_((1 - part) * ends[0][name] + part * ends[1][name])
        size = {"max_shard_size": "20KB"} if shards else {}
        one.save_pretrained(folder / f"checkpoint-{100 * (number + 1)}", **size)
    return folder


@pytest.mark.parametrize("listed", [False, True])
def test_a_series_is_a_run_in_order_of_steps(tmp_path, adopted, text, listed):
    folder = series(tmp_path / "runs", 3)
    names = [str(folder / f"checkpoint-{step}") for step in (100, 200, 300)]
    manifest = adopted({**CAUSAL, "weights": names if listed else str(folder)})
    assert checkpoints.checkpoint_steps(manifest) == [100, 200, 300]
    assert evaluate(manifest, {"text": (text, 10)})["step"].unique().tolist() == [100, 200, 300]
    kept = json.loads((tmp_path / "series" / "run.json").read_text())["checkpoints"]
    assert set(kept["200"]["files"]) >= {"config.json", "model.safetensors"}


def test_a_later_change_is_refused_by_name(tmp_path, adopted):
    entry = {**CAUSAL, "weights": str(series(tmp_path / "runs", 3))}
    manifest = adopted(entry)
    changed = tmp_path / "runs" / "checkpoint-200" / "model.safetensors"
    tensors = load_file(changed)
    tensors["embed_out.weight"] += 1
    save_file(tensors, changed)
    for again in (lambda: stored.load_model(manifest, 200), lambda: adopted(entry)):
        with pytest.raises(
            ArtifactError, match=r"checkpoint-200/model.safetensors has changed"
        ) as e:
            again()
        assert "delete" in str(e.value)
        assert "run.json" in str(e.value)
    assert stored.load_model(manifest, 300).length == LENGTH


def damage(folder, what):
    shards = sorted(folder.glob("model-*.safetensors"))
    if what == "missing":
        shards[1].unlink()
    elif what == "cut short":
        shards[1].write_bytes(shards[1].read_bytes()[:-100])
    else:
        tensors = load_file(shards[1])
        tensors.popitem()
        save_file(tensors, shards[1])


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("missing", "No such file"),
        ("cut short", "not a readable safetensors file"),
        ("lacks a tensor", "1 tensors of GPTNeoXForCausalLM are missing"),
    ],
)
def test_a_checkpoint_with_a_bad_shard_is_left_out(tmp_path, adopted, what, said):
    folder = series(tmp_path / "runs", 4, shards=True)
    damage(folder / "checkpoint-200", what)
    entry = {**CAUSAL, "weights": str(folder)}
    run = Manifest.read(adopted(entry), "model")
    assert run.about["steps"] == [100, 300, 400]
    assert said in run.about["suspects"]["200"][0]
    assert "checkpoint-200" in run.about["suspects"]["200"][0]
    with pytest.raises(Refusal, match=said):
        adopted({**entry, "audit": False}, "all")


def test_suspects_are_left_out_and_can_be_read(tmp_path, adopted, text):
    folder = series(tmp_path / "runs", 6)
    shutil.copy2(folder / "checkpoint-500/model.safetensors", folder / "checkpoint-200")
    entry = {**CAUSAL, "weights": str(folder)}
    manifest = adopted(entry)
    run = Manifest.read(manifest, "model")
    assert run.about["steps"] == [100, 300, 400, 500, 600]
    assert "those of step 500" in " ".join(run.about["suspects"]["200"])
    assert stored.load_model(manifest, 200).length == LENGTH
    assert len(checkpoints.history(manifest)) == 6
    everything = adopted({**entry, "audit": False}, "all")
    assert checkpoints.checkpoint_steps(everything) == [100, 200, 300, 400, 500, 600]


def pickled(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def incomplete(folder):
    tensors = load_file(folder / "model.safetensors")
    del tensors["bert.encoder.layer.0.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def of_bytes(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.embeddings.word_embeddings.weight"] = torch.ones(120, 16, dtype=torch.int8)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def added(name, value=(1.0, 1.0, 1.0)):
    """Gives the checkpoint one more tensor, or another one, of this name."""

    def spoil(folder):
        tensors = load_file(folder / "model.safetensors")
        tensors[name] = torch.tensor(value)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return spoil


BAD = {
    "a layer that config.json does not have": (
        lambda folder: own_models.edit(folder, num_hidden_layers=1),
        r"16 tensors of the checkpoint, such as bert.encoder.layer.1.*none of BertForMaskedLM as",
    ),
    "an adapter beside the weights": (
        added("bert.encoder.layer.0.attention.self.query.lora_A.default.weight"),
        "1 tensors of the checkpoint, such as .*lora_A.*correct config.json, or save it",
    ),
    "learnt positions that config.json calls rotary": (
        lambda folder: (
            own_models.model("esm", mask_token_id=4).save_pretrained(folder),
            own_models.edit(folder, position_embedding_type="rotary"),
        ),
        "1 tensors of EsmForMaskedLM are missing .*such as esm.rotary_embeddings.inv_freq",
    ),
    "a norm that config.json switches off": (
        added("esm.embeddings.layer_norm.weight"),
        "1 tensors of the checkpoint, such as esm.embeddings.layer_norm.weight, are none of",
    ),
    "a bias that the class does not have": (
        added("bert.embeddings.word_embeddings.bias"),
        "1 tensors of the checkpoint, such as bert.embeddings.word_embeddings.bias, are none of",
    ),
    "a trained head beside the one that is used": (
        added("cls.decoder.modules_to_save.default.weight", torch.ones(120, 16).tolist()),
        "a tensor cls.decoder.modules_to_save.default.weight, of .* of BertForMaskedLM; expected.*"
        "write it as cls.predictions.decoder.weight, with tie_word_embeddings: false",
    ),
    "whole numbers": (
        of_bytes,
        r"1 weights, such as .*word_embeddings.weight"
        r", are whole numbers, or have scales apart \(I8\)",
    ),
    "scaled numbers": (
        added("bert.encoder.layer.0.output.dense.weight_scale_inv"),
        r"1 weights, such as .*0.output.dense.weight"
        r", are whole numbers, or have scales apart \(F32\)",
    ),
    "weights of another time beside shards": (
        lambda folder: own_models.model().save_pretrained(folder, max_shard_size="5KB"),
        r"both model.safetensors and .*index.json with model-00001.*; move model.safetensors away",
    ),
    "shards without an index": (
        lambda folder: (
            own_models.model().save_pretrained(folder, max_shard_size="5KB"),
            [(folder / name).unlink() for name in (layout.WHOLE, layout.INDEX)],
        ),
        r"but only model-00001.*; expected the index of its parts; copy .* write it: \(cd '.*bert'",
    ),
    "an index without some of the shards": (
        lambda folder: (
            own_models.model().save_pretrained(folder, max_shard_size="5KB"),
            (folder / layout.WHOLE).unlink(),
            own_models.edit(
                folder,
                layout.INDEX,
                weight_map={"one": min(path.name for path in folder.glob("model-*"))},
            ),
        ),
        r"model-00002.* is there, but model.safetensors.index.json does not list it: .*\(cd ",
    ),
    "an index that is none": (
        lambda folder: (
            (folder / "model.safetensors").rename(folder / layout.INDEX).write_text("[]")
        ),
        "a file of it is missing, cut short or of another format",
    ),
    "an index without files": (
        lambda folder: (
            (folder / "model.safetensors").rename(folder / layout.INDEX).write_text("{}")
        ),
        "a file of it is missing, .*index.json names no files under weight_map",
    ),
    "empty tensors": (
        lambda folder: save_file({"cls.predictions.bias": torch.ones(0)}, folder / layout.WHOLE),
        "tensors of BertForMaskedLM are missing .*ZeRO-3 saved apart",
    ),
    "another shape": (
        added("bert.embeddings.word_embeddings.weight"),
        r"such as bert.*word_embeddings.weight \(found shape \[3\], expected \[120, 16\]\)",
    ),
    "a config of other types": (
        lambda folder: own_models.edit(folder, vocab_size="many"),
        "whose config.json has vocab_size: 'many'; expected it as save_pretrained",
    ),
    "llama.cpp beside config.json": (
        lambda folder: (folder / "model.safetensors").rename(folder / "small.gguf"),
        r"but only small.gguf; .*from_pretrained\(.*gguf_file='small.gguf'\)\.save",
    ),
    "parts of DeepSpeed": (
        lambda folder: (folder / "model.safetensors").rename(
            (folder / "at").mkdir() or folder / "at/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"
        ),
        "at/bf16_zero.*by: python .*bert/zero_to_fp32.py .*bert other --safe_ser.*copy config.json",
    ),
    "parts of FSDP": (
        lambda folder: (folder / "model.safetensors").rename(folder / "__0_0.distcp"),
        "__0_0.distcp, a part of weights of FSDP; join them by: accelerate merge-weights .*bert o",
    ),
    "parts of verl": (
        lambda folder: (folder / "model.safetensors").rename(
            folder / "model_world_size_1_rank_0.pt"
        ),
        "rank_0.pt, a part .*verl.model_merger merge --backend fsdp --local_dir .*bert --target",
    ),
    "parts of Megatron": (
        lambda folder: (folder / "model.safetensors").rename(
            (folder / "mp_rank_00").mkdir() or folder / "mp_rank_00/model_optim_rng.pt"
        ),
        "model_optim_rng.pt, a part of weights of Megatron; join .*export .*, from .*bert to other",
    ),
    "no safetensors": (
        pickled,
        "has no model.safetensors or .* but only pytorch_model.bin; expected safetensors",
    ),
    "remote code": (
        lambda folder: own_models.edit(folder, auto_map={"AutoModelForMaskedLM": "mine.Mine"}),
        "asks for code of its own .*mine.Mine.*never run; expected a class of transformers",
    ),
    "unknown type": (
        lambda folder: own_models.edit(folder, model_type="mine"),
        "model_type mine, .*as BertForMaskedLM; expected a language model that transformers has",
    ),
    "another objective": (
        lambda folder: own_models.edit(folder, architectures=["BertLMHeadModel"]),
        "found masked for .*bert, .*which was saved as BertLMHeadModel; expected next-token",
    ),
    "a lost tensor": (incomplete, "1 tensors of BertForMaskedLM are missing"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "which has no config.json"),
    "llama.cpp": (
        lambda folder: (folder / "config.json").rename(folder / "small.gguf"),
        r"no config.json.*AutoModelForCausalLM.from_pretrained\(.*gguf_file='small.gguf'\)\.save",
    ),
    "short positions": (
        lambda folder: own_models.model(max_position_embeddings=8).save_pretrained(folder),
        "at most 8 positions, but the sequences have length 12, special tokens included; expected "
        "at most 8; lower",
    ),
    "another |V|": (
        lambda folder: own_models.model(vocabulary=90).save_pretrained(folder),
        r"bert, of 90 tokens, but .*text.parquet is .* holds token 119; expected sequences of",
    ),
    "many more rows": (
        lambda folder: own_models.model(vocabulary=400).save_pretrained(folder),
        r"bert, of 400 tokens, but .* \|V\| = 120 .*expected sequences of the model's own tokeni",
    ),
    "a mask token beyond the rows": (
        lambda folder: own_models.model(vocabulary=4).save_pretrained(folder),
        "bert, of 4 tokens, but .* holds token 119",
    ),
    "quantised": (
        lambda folder: own_models.edit(folder, quantization_config={"quant_method": "gptq"}),
        r"whose weights are quantised \(gptq\).*AutoModelForMaskedLM.*dequantize",
    ),
    "an adapter": (
        lambda folder: (folder / "adapter_config.json").write_text("{}"),
        r"which is an adapter \(LoRA.*beside weights of its own; .*if the weights have it added, "
        r"move adapter_config.json .*PeftModel.*\(or AutoModelForMaskedLM\).*merge_and_unload",
    ),
    "an adapter without its config": (
        lambda folder: (folder / layout.WHOLE).rename(folder / "adapter_model.safetensors"),
        r"is an adapter \(LoRA .*without its adapter_config.json \(copy .*merge_and_unload",
    ),
    "a value that the library refuses": (
        lambda folder: own_models.edit(folder, hidden_size="many"),
        "bert, which transformers .* cannot read .*hidden_size.*from_pretrained.*reads here",
    ),
    "a config cut short": (
        lambda folder: (folder / "config.json").write_text("{"),
        "config.json is not a readable JSON document.*save or copy it again",
    ),
    "a causal model as a masked one": (
        lambda folder: own_models.edit(folder, is_decoder=True),
        "bert, whose logits of a masked token do not change with later tokens.*is_decoder",
    ),
    "another tokenizer": (
        lambda folder: own_models.word_piece(100).save_pretrained(folder),
        "with a tokenizer in .*bert, but .*own tokenizer, .*name that folder",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_model_of_the_text_is_refused(case, bert, adopted):
    spoil, said = BAD[case]
    spoil(bert)
    with pytest.raises(Refusal, match=said):
        adopted({**MASKED, "weights": str(bert)})


def test_weights_that_are_not_finite_are_refused_where_one_model_is_opened(bert):
    own_models.edit(bert, mask_token_id=3)
    added("cls.predictions.bias", [torch.inf] * 120)(bert)
    with pytest.raises(Refusal, match=r"its tensor cls.predictions.* holds numbers that are not f"):
        Pretrained.open(bert, 12)


@pytest.mark.parametrize(
    "name",
    [
        "encoder.layer.0.attention.self.bias",
        "encoder.layer.1.masked_bias",
        "head.weight",
        "layers.2.mlp.weight",  # behind the two, of which the config says that one sees ahead
    ],
)
def test_tables_of_older_versions_and_other_heads_are_passed_over(name, bert, adopted):
    own_models.edit(bert, num_nextn_predict_layers=int(".2." in name))
    added(f"bert.{name}", [-torch.inf if "bias" in name else 1.0])(bert)
    assert adopted({**MASKED, "weights": str(bert)})


def test_numbers_that_json_does_not_have_are_read_as_the_library_writes_them(bert, adopted):
    own_models.edit(bert, time_limit=[0.0, math.inf], pad_token_id=120)  # beyond |V| too
    document = read_json(adopted({**MASKED, "weights": str(bert)}).parent / "model.json")
    assert document["config"]["time_limit"] == [0.0, {"__float__": "Infinity"}]


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        ("BertForSequenceClassification", "which is no language model of text alone"),
        ("ElectraForPreTraining", "a discriminator.*take its generator"),
        ("FunnelForPreTraining", "a discriminator"),
        ("XLNetLMHeadModel", "whose logits see the token that they are of.*take another model"),
        (
            None,
            r'as nothing; .*"architectures": \["BertForMaskedLM"\] or .*\["BertLMHeadModel"\] into',
        ),
    ],
)
def test_what_predicts_no_tokens_is_refused_by_what_it_is(bert, saved, said):
    own_models.edit(bert, architectures=saved and [saved])
    with pytest.raises(Refusal, match=said):
        Pretrained.open(bert, LENGTH)
    assert layout.objective({"model_type": "gpt_neox"}, "gpt") == "next-token"
    saved = {"architectures": ["BertForPreTraining"]}
    assert layout.objective({"model_type": "bert", **saved}, "bert") == "masked"
    with pytest.raises(Refusal, match="an encoder-decoder"):
        layout.objective({"model_type": "bart", "is_encoder_decoder": True}, "bart")


def test_a_model_that_sees_later_tokens_is_no_causal_one(bert, adopted):
    own_models.edit(bert, architectures=["BertLMHeadModel"])
    for read in (
        lambda: adopted({**CAUSAL, "weights": str(bert)}),
        lambda: Pretrained.open(bert, LENGTH),
    ):
        with pytest.raises(Refusal, match=r"bert, whose logits change with later tokens.*is_deco"):
            read()
    own_models.edit(bert, is_decoder=True)  # what the message says
    assert Pretrained.open(bert, LENGTH).about.causal


def test_a_masked_model_before_training_may_ignore_the_context(tmp_path):
    library = own_models.model()
    for value in library.parameters():
        value.data.zero_()
    library.config.mask_token_id = 4
    library.save_pretrained(tmp_path)
    assert not Pretrained.open(tmp_path, LENGTH).about.causal


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda name: f"_orig_mod.{name}",
        lambda name: f"module.{name.replace('.layers.0.', '.layers.0._orig_mod.')}",
        lambda name: f"model.net.{name}",
        lambda name: f"{'' if 'v_head' in name else 'pretrained_model.'}{name}",  # as TRL's
    ],
)
def test_weights_of_a_wrapped_model_are_read(tmp_path, wrapped):
    library = own_models.model("gpt_neox")
    library.save_pretrained(tmp_path, max_shard_size="20KB")
    index = json.loads((tmp_path / layout.INDEX).read_text())
    index["weight_map"] = {wrapped(name): file for name, file in index["weight_map"].items()}
    (tmp_path / layout.INDEX).write_text(json.dumps(index))
    for file in tmp_path.glob("*.safetensors"):
        held = {**load_file(file), "v_head.summary.weight": torch.ones(1, 16)}
        save_file({wrapped(name): value for name, value in held.items()}, file, {"format": "pt"})
    model = Pretrained.open(tmp_path, LENGTH)
    with torch.no_grad():
        expected = library(input_ids=tokens(3)).logits
        torch.testing.assert_close(model(tokens(3)), expected, rtol=1e-5, atol=1e-5)


def test_rows_beyond_the_own_tokenizer_are_left_out(tmp_path, adopted, text):
    own_models.model("gpt_neox", 1000).save_pretrained(tmp_path / "runs/step-1")
    own_models.word_piece(VOCABULARY).save_pretrained(tmp_path / "runs")
    said = own_tokenizer.described(tmp_path / "runs")
    write(text, tokens(40).numpy(), VOCABULARY, {"special": said})
    manifest = adopted({**CAUSAL, "weights": str(tmp_path / "runs")})
    assert stored.load_model(manifest)(tokens(1)).shape[-1] == VOCABULARY


def test_tokens_beyond_the_rows_are_refused_if_the_text_has_them(tmp_path, adopted, text):
    own_models.model("gpt_neox", VOCABULARY).save_pretrained(tmp_path / "gpt")
    special = {**SPECIAL, "special": [0, 1, VOCABULARY], "mask": VOCABULARY}
    write(text, tokens(40).numpy(), VOCABULARY + 1, {"special": special})
    entry = {**CAUSAL, "weights": str(tmp_path / "gpt")}
    manifest = adopted(entry)
    assert stored.load_model(manifest).special == (0, 1)
    assert evaluate(manifest, {"text": (text, 10)})["predictions"].min() > 0
    used = tokens(40).numpy()
    used[-1, -1] = VOCABULARY
    write(text, used, VOCABULARY + 1, {"special": special})
    with pytest.raises(Refusal, match=rf"of 120 tokens, but .* holds token {VOCABULARY}"):
        adopted(entry)


@pytest.mark.parametrize("more", [[], ["AA", "LAG"]])
def test_a_list_of_letters_is_a_tokenizer_as_the_library_reads_it(tmp_path, more):
    letters = [*["<cls>", "<pad>", "<eos>", "<unk>", "L", "A", "G", "V", ".", "-"], *more, "<mask>"]
    (tmp_path / "vocab.txt").write_text("\n".join(letters))
    library = transformers.EsmTokenizer(str(tmp_path / "vocab.txt"))
    own_tokenizer.take(tmp_path, "esm", tmp_path / "made.json", tmp_path / "special.json")
    made = Tokenizer.from_file(str(tmp_path / "made.json"))
    for text in ("LAGAAV", "LA\nG-.V", "AAAAL x GV<mask>L"):
        assert made.encode(text).ids == library(text)["input_ids"]
    said = json.loads((tmp_path / "special.json").read_text())
    mask = len(letters) - 1
    assert (said["before"], said["after"], said["mask"]) == ([0], [2], mask)
    assert said["special"] == [0, 1, 2, 3, mask]
    library.save_pretrained(tmp_path)
    assert own_tokenizer.described(tmp_path)["mask"] == mask
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text(
        "[PAD] [UNK] [CLS] [SEP] [MASK] AG GL A"
    )  # as ProtBERT's, DNABERT's
    assert own_tokenizer.read(tmp_path, "words").encode("GL AG AGGL AA").ids == [
        2,
        6,
        5,
        1,
        7,
        7,
        3,
    ]
    said = own_tokenizer.described(tmp_path)
    assert (said["before"], said["after"], said["mask"]) == ([2], [3], 4)
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n##b")
    for way in (r"write it.*from_pretrained\('esm'\)", r"started: .*from_pretrained\(BASE\)"):
        message = rf"esm, which has no tokenizer.json.*{way}.save_pretrained\('esm'\)"
        with pytest.raises(Refusal, match=message):
            own_tokenizer.take(tmp_path, "esm", tmp_path / "made.json", tmp_path / "special.json")
        (tmp_path / "vocab.txt").unlink(missing_ok=True)


def test_a_text_of_unknown_tokens_is_refused(bert, adopted, text, capsys):
    drawn = tokens(40).numpy()
    drawn[:, 1:4] = 1
    write(text, drawn, VOCABULARY, {"special": {**SPECIAL, "before": [2], "after": [3]}})
    adopted({**MASKED, "weights": str(bert)})
    said = capsys.readouterr().out
    for part in ("30% of the tokens of", "is no less than that of a guess, log |V| = 4.79: if"):
        assert part in said
    drawn[:, 1:8] = 1
    write(text, drawn, VOCABULARY, {"special": {**SPECIAL, "before": [2], "after": [3]}})
    with pytest.raises(Refusal, match="a text that the tokenizer does not know: 70%"):
        adopted({**MASKED, "weights": str(bert)}, "again")


def test_what_is_no_checkpoint_of_a_series_is_passed_over_by_name(tmp_path, adopted):
    folder = series(tmp_path / "runs", 2)
    for name in ("tmp-checkpoint-200", "final", "checkpoint-400"):
        shutil.copytree(folder / "checkpoint-100", folder / name)
    (folder / "checkpoint-400/model.safetensors").rename(folder / "checkpoint-400/optimizer.pt")
    entry = {**CAUSAL, "weights": str(folder)}
    assert checkpoints.checkpoint_steps(adopted(entry)) == [100, 200]
    passed = "; ".join(checkpoint_series.checkpoints(folder)[1])
    for said in ("tmp-checkpoint-200: temporary", "final: no step", "checkpoint-400: without w"):
        assert said in passed
    shutil.copytree(folder / "checkpoint-100", folder / "checkpoint-0200")
    with pytest.raises(Refusal, match=r"checkpoint-0200 and checkpoint-200; .*take one of"):
        adopted(entry)
    (folder / "checkpoint-0200").rename(folder / "iter_0")
    unaudited = adopted({**entry, "audit": False}, "first")
    assert checkpoints.checkpoint_steps(unaudited) == [0, 100, 200]
    (folder / "iter_0").rename(folder / "other-checkpoint-250")
    with pytest.raises(Refusal, match=r"begin differently, such as .* and other-checkpoint-250;"):
        adopted(entry)
    shutil.copytree(folder / "checkpoint-100", folder, dirs_exist_ok=True)
    assert checkpoints.checkpoint_steps(adopted(entry, "one")) == [0]
    assert "checkpoint-100, checkpoint-200, " in str(checkpoint_series.checkpoints(folder))
    shutil.move(folder, tmp_path / "up/there")
    with pytest.raises(Refusal, match=r"up, which has no config.json .*holds 6: .*up/there/"):
        adopted({**CAUSAL, "weights": str(tmp_path / "up")})


def named(folder, *names):
    for name in names:
        (folder / name).mkdir()
        for file in ("config.json", "model.safetensors"):
            (folder / name / file).touch()


@pytest.mark.parametrize(
    ("first", "second", "step"),
    [
        ("epoch=0-step=100", "epoch=1-step=2000", 2000),
        ("step-100", "step-2K", 2000),
        ("run-2024-01-step100", "run-2025-02-step2000", 2000),
        ("step100-tokens4B", "step2000-tokens8B-unsharded", 2000),
        ("checkpoint-100-merged", "checkpoint-2000_hf", 2000),
        ("ep0-ba100", "ep12-ba2000", 2000),
        ("chck_100", "chck_2M", 2_000_000),
        ("checkpoint-100-epoch-1", "checkpoint-2000", 2000),
        ("100-steps", "2000-steps", 2000),
        ("it100", "it2000", 2000),
        ("update_100", "update_2000", 2000),
        ("Checkpoint-100", "Checkpoint-2k", 2000),
        ("iter_100-HF", "iter_2000-HF", 2000),
    ],
)
def test_names_of_one_run_may_count_epochs_thousands_and_millions(tmp_path, first, second, step):
    named(tmp_path, first, second)
    assert sorted(checkpoint_series.found(str(tmp_path))) == [100, step]


@pytest.mark.parametrize("run", ["run", "small-v", "r", "exp-", "lr3e-"])
def test_two_runs_in_one_folder_are_refused_by_their_numbers(run, tmp_path):
    named(tmp_path, f"{run}1-step100", f"{run}2-step200")
    said = f"begin differently, such as {run}1-step100 and {run}2-step200"
    with pytest.raises(Refusal, match=said):
        checkpoint_series.found(str(tmp_path))


def test_a_folder_of_checkpoints_is_refused_with_one_to_name(tmp_path):
    named(tmp_path, "checkpoint-90", "checkpoint-1000", "tmp")
    said = r"holds 3: .*tmp, .*-90, .*-1000; name one, such as .*checkpoint-1000$"
    with pytest.raises(Refusal, match=said):
        Pretrained.open(tmp_path, 8)


def test_a_series_is_described_as_the_last_checkpoint_that_is_kept(tmp_path, adopted):
    """Precision, and keys that change nothing here, are those of a program, not of a model."""
    folder = series(tmp_path / "runs", 4)
    half = folder / "checkpoint-100" / layout.WHOLE
    # With an embedding under a head's name too, and tables of frequencies, as older versions wrote.
    save_file(
        {
            new: one.bfloat16()
            for name, one in load_file(half).items()
            for new in {name, name.replace("gpt_neox.embed_in", "output")}
            | {name.replace("attention.dense.bias", "attention.rotary_emb.inv_freq")}
        },
        half,
    )
    own_models.edit(
        folder / "checkpoint-200",
        layer_norm_eps=None,
        attn_implementation="flash_attention_2",
        _attn_implementation="flash_attention_2",
    )
    own_models.edit(folder / "checkpoint-400", layer_norm_eps=0.5)
    run = Manifest.read(adopted({**CAUSAL, "weights": str(folder)}), "model")
    assert run.about["steps"] == [100, 200, 300]
    assert run.about["description"]["config"]["layer_norm_eps"] == 1e-5


def test_text_of_a_tokenizer_that_was_trained_on_it_is_refused(bert, adopted, text):
    """Also where |V| is the same by chance."""
    own_models.word_piece(VOCABULARY).save_pretrained(bert)
    write(text, tokens(40).numpy(), VOCABULARY, {"made": {"tokenizer": "sha256 of a file"}})
    with pytest.raises(Refusal, match=r"of 120 tokens, with a tokenizer in .*bert, but"):
        adopted({**MASKED, "weights": str(bert)})


def test_a_masked_model_needs_a_mask_token(bert, tmp_path, adopted, text):
    write(text, tokens(40).numpy(), VOCABULARY, {"special": {**SPECIAL, "mask": None}})
    with pytest.raises(Refusal, match=r"no mask token; expected one.*save beside the weights"):
        adopted({**MASKED, "weights": str(bert)})


def test_a_causal_model_has_no_masked_logits(tmp_path):
    own_models.model("gpt_neox").save_pretrained(tmp_path / "causal")
    model = Pretrained.read(tmp_path / "causal", "causal", described("next-token"))
    with pytest.raises(ValueError, match="predicts the next token and has no masked logits; exp"):
        model.masked_logits(tokens(1), torch.tensor([0]), torch.tensor([3]))
    with pytest.raises(
        Refusal, match=r"found masked for gpt, of model_type gpt_neox, .*expected next-token"
    ):
        layout.objective({"model_type": "gpt_neox"}, "gpt", "masked")
    model.features = lambda given, mask: torch.rand(len(given), LENGTH, 16)  # as a Reformer's
    with pytest.raises(Refusal, match="whose logits of a sequence are others when it is read agai"):
        model.check_objective(tokens(4), "gpt")


def test_names_without_a_step_and_twice_the_same_are_refused(tmp_path, adopted):
    folder = series(tmp_path / "runs", 2)
    shutil.copytree(folder / "checkpoint-100", folder / "final")
    shutil.copytree(folder / "checkpoint-100", folder / "step-100")
    for names, said in (
        (["checkpoint-100", "final"], "found final, whose name does not end in its step"),
        (
            ["checkpoint-100", "step-100"],
            "found 2 checkpoints .* of one step checkpoint-100 and step-100; .*take one of them",
        ),
        (["checkpoint-200", "checkpoint-100"], r"steps \[200, 100\]; expected .*; list them so"),
        (["checkpoint-300"], "which is no folder; expected one in save_pretrained layout"),
    ):
        with pytest.raises(Refusal, match=said):
            adopted({**CAUSAL, "weights": [str(folder / name) for name in names]})
    named = {"weights": [str(folder / name) for name in ("checkpoint-100", "final")]}
    manifest = adopted({**CAUSAL, **named, "steps": [1, 2], "audit": False})
    assert checkpoints.checkpoint_steps(manifest) == [1, 2]
