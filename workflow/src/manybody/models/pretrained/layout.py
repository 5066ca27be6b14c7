"""The files of one checkpoint in `save_pretrained` layout: config.json and safetensors.

Nothing pickled is opened and no code beside the weights runs.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from manybody.io.atomic import ArtifactError, read_json
from manybody.io.checkpoints import heads
from manybody.io.refusal import Refusal

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
# Files of weights, and not those of an optimizer, a scheduler or a random generator beside them.
WEIGHTS = re.compile(
    r"(?!training_args|optimizer|scheduler|rng_state|random_states|scaler)"
    r".*\.(safetensors|bin|pt|pth|ckpt|pkl|pickle|msgpack|h5|gguf|onnx|ot|distcp)$"
)
# Tables that older versions of transformers kept beside weights, and that are computed anew: masks,
# which in half precision are not finite, places and their frequencies.
TABLES = r"(masked_bias|causal_mask|inv_freq|position_ids|\b(attn|attention|self)\.bias)$"
# Files of weights that programs save apart, each with what joins those beside the file {0}.
APART = {
    "*zero_pp_rank_*": "DeepSpeed; join them by: python {0.parent.parent}/zero_to_fp32.py "
    "{0.parent.parent} other --safe_serialization",
    "*.distcp": "FSDP; join them by: accelerate merge-weights {0.parent} other",
    "model_world_size_*": "verl; join them by: python -m verl.model_merger merge --backend fsdp "
    "--local_dir {0.parent} --target_dir other",
    "mp_rank_*/model_optim_rng.pt": "Megatron; join them by its tools/checkpoint/convert.py or by "
    "the export of Megatron Bridge, from {0.parent.parent} to other",
}
# Writes the index of the shards in a folder {0} anew.
MAKE_INDEX = (
    "(cd '{0}' && python -c \"import glob, json, safetensors as s; json.dump({{'metadata': {{}}, "
    "'weight_map': {{n: f for f in glob.glob('model-*.safetensors') for n in s.safe_open(f, 'pt')"
    ".keys()}}}}, open('model.safetensors.index.json', 'w'))\")"
)
# What torch.compile, the wrappers of parallel training and TRL's models with a value head put into
# the names of tensors.
WRAPPERS = (
    r"\b(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|module|pretrained_model)\."
)
# Parts of the names of classes, and the objective that such a class was trained for. XLM's is both.
FITS = {
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "WithLMHeadModel": "masked",
    "ForCausalLM": "next-token",
    "LMHeadModel": "next-token",
}
DISCRIMINATOR = "a discriminator, which has no logits of tokens", "its generator"
NOT_ONE = {
    "ElectraForPreTraining": DISCRIMINATOR,
    "FunnelForPreTraining": DISCRIMINATOR,
    "XLNetLMHeadModel": ("whose logits see the token that they are of", "another model"),
    "For": ("which is no language model of text alone", "the language model that it was made of"),
    "encoder-decoder": ("an encoder-decoder, which reads two sequences", "another model"),
}
CLASSES = {"masked": "AutoModelForMaskedLM", "next-token": "AutoModelForCausalLM"}
# Types of the keys of config.json that are read here, where they are given.
TYPES = {
    "architectures": list | str,
    "auto_map": dict,
    "model_type": str,
    "quantization_config": dict,
    "text_config": dict,
    "vocab_size": int | float,
}
# Keys of config.json that say how a file was made or read, not what the model is.
BOOKKEEPING = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache"}


class CheckpointError(Refusal):
    """The files of one checkpoint are not whole."""


class Layout(NamedTuple):
    """A whole checkpoint: its config, and of each tensor its type, its shape and its file."""

    config: dict
    tensors: dict[str, tuple[str, list[int], str]]


def how_to_save(
    names: Iterable[str], origin: str, plain: str = "save it with model.save_pretrained(folder)"
) -> str:
    """What to do for a model in this layout: `plain`, or the way from a file of llama.cpp, a folder
    of models or parts of weights."""
    inner = sorted(
        str(path.parent)
        for path in Path(origin).glob(f"*/**/{CONFIG}")
        if any(path.parent.glob("*.safetensors"))
    )
    inner.sort(key=len)
    if inner:
        return f"it holds {len(inner)}: {', '.join(inner[-5:])}; name one, such as {inner[-1]}"
    packed = min((name for name in names if name.endswith(".gguf")), default=None)
    if packed is None:
        joined = (
            f"it holds {path}, a part of weights of {way.format(path)}; copy config.json and the "
            "tokenizer into other, and name that folder"
            for pattern, way in APART.items()
            for path in sorted(Path(origin).glob(f"**/{pattern}"))
        )
        return next(joined, plain)
    read = f"transformers.AutoModelForCausalLM.from_pretrained({origin!r}, gguf_file={packed!r})"
    return f"write it anew with {read}.save_pretrained(other), and name that folder"


def small_files(names: Iterable[str], origin: str) -> list[str]:
    """The files of the checkpoint `origin` that say what the others are; `Refusal` where there is
    no config.json or no safetensors."""
    names = set(names)
    whole = names & {WHOLE, INDEX}
    if ADAPTER in names or ("adapter_model.safetensors" in names and not whole):
        beside = way = ""
        if whole:
            beside = f", by its {ADAPTER}, beside weights of its own"
            way = (
                f"if the weights have it added, move {ADAPTER} and adapter_model.* elsewhere; else "
            )
        elif ADAPTER not in names:
            beside = f", without its {ADAPTER} (copy that too)"
        raise Refusal(
            f"found {origin}, which is an adapter (LoRA or the like) of another model{beside}; "
            f"expected the weights of both in one; {way}add it to the model BASE that {ADAPTER} "
            f"names: peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM (or "
            f"AutoModelForMaskedLM).from_pretrained(BASE), {origin!r}).merge_and_unload()"
            f".save_pretrained(other), and name that folder (prompts and prefixes cannot be added)",
            "weights",
        )
    if CONFIG not in names:
        raise Refusal(
            f"found {origin}, which has no config.json; expected a checkpoint in save_pretrained "
            f"layout; {how_to_save(names, origin)}",
            "weights",
        )
    shards = [name for name in names if re.match(r"model-\d+-of-\d+\.safetensors$", name)]
    if shards and len(whole) == 2:
        raise Refusal(
            f"found {origin}, which has both {WHOLE} and {INDEX} with {min(shards)}, which may be "
            f"weights of different times; expected one of them; move {WHOLE} away, or {INDEX} and "
            f"the parts that it lists (from a copy on your disk, where it is of the hub)",
            "weights",
        )
    if whole:
        return [CONFIG] if WHOLE in names else [CONFIG, INDEX]
    others = sorted(filter(WEIGHTS.match, names))
    held = f"but only {', '.join(others[:3])}" if others else "and no other weights"
    if shards:
        expected = "the index of its parts"
        way = f"copy {INDEX}, which is missing, or write it: {MAKE_INDEX.format(origin)}"
    else:
        expected = "safetensors, as reading pickled weights can run code"
        way = (
            f"copy what is missing of these, rename the {WHOLE} that has another name, or convert "
            f"pickled ones elsewhere, in a container without network (parts by DeepSpeed or FSDP "
            f"after zero_to_fp32.py or accelerate merge-weights have joined them; those of "
            f"TensorFlow or Flax by transformers 4, with from_tf=True or from_flax=True; those of "
            f"ONNX are made from others, those of Lightning, torchtune and litgpt are saved anew "
            f"by them): transformers.AutoModelForCausalLM (or AutoModelForMaskedLM)"
            f".from_pretrained({origin!r}).save_pretrained(other), and name that folder"
        )
    raise Refusal(
        f"found {origin}, which has no {WHOLE} or {INDEX} {held}; expected {expected}; "
        f"{how_to_save(names, origin, way)}",
        "weights",
    )


def read(folder: Path, origin: str) -> Layout:
    """Contents of the checkpoint in a folder, from its small files and the heads of the others;
    `Refusal` where it has another layout, `CheckpointError` where a file is missing or cut short.
    """
    if not folder.is_dir():
        raise Refusal(
            f"found {origin}, which is no folder; expected one in save_pretrained layout; correct "
            f"the path",
            "weights",
        )
    small = small_files([path.name for path in folder.iterdir() if path.is_file()], origin)
    try:
        config, *index = ({**read_json(folder / name)} for name in small)
        if index and not index[0].get("weight_map"):
            raise TypeError(f"{INDEX} names no files under weight_map")
        listed = sorted({*index[0]["weight_map"].values()}) if index else [WHOLE]
        found = {shard: heads(folder / shard) for shard in listed}
    except (ArtifactError, AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{origin}: a file of it is missing, cut short or of another format ({error}); "
            f"expected what save_pretrained writes; save or copy it again (git lfs pull, where it "
            f"is a pointer)"
        ) from error
    tensors = {name: (*part, shard) for shard, held in found.items() for name, part in held.items()}
    return Layout(config, tensors)


def output_rows(config: dict) -> int | None:
    """Output rows of a model, those of padding among them, where its config says them."""
    rows = config.get("vocab_size", (config.get("text_config") or {}).get("vocab_size"))
    return rows if isinstance(rows, int) else None


def unwrapped(names: Iterable[str]) -> dict[str, str]:
    """Names of tensors, as patterns, and those without wrappers' marks and what all begin with."""
    short = {name: re.sub(WRAPPERS, "", name) for name in names}
    parts = zip(*(left.split(".") for left in short.values()), strict=False)
    lead = "".join(f"{part[0]}." for part in takewhile(lambda part: len(set(part)) == 1, parts))
    return {f"^{re.escape(name)}$": left.removeprefix(lead) for name, left in short.items()}


def objective(config: dict, origin: str, asked: str | None = None) -> str:
    """The objective of a model, `masked` or `next-token`: as `asked`, else of the class that it was
    saved as.

    `Refusal` where that class is for something else or does not show, where transformers has none
    for the objective, for code beside the weights, and for weights that are no plain numbers.
    """
    wrong = [f"no keys, but {config!r:.40}"]
    if isinstance(config, dict):
        wrong = [
            f"{key}: {config[key]!r:.40}"
            for key, kind in TYPES.items()
            if not isinstance(config.get(key), kind | None)
        ]
    if wrong:
        raise CheckpointError(
            f"found {origin}, whose config.json has {wrong[0]}; expected it as save_pretrained "
            f"writes it; correct it there, or copy the file again",
            "weights",
        )
    from transformers.models.auto import modeling_auto

    tables = {
        "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "next-token": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    }
    classes = [CLASSES[asked]] if asked else CLASSES.values()
    kind, remote = config.get("model_type"), config.get("auto_map") or {}
    if code := sorted(set(remote) & {"AutoConfig", "AutoModel", *classes}):
        raise Refusal(
            f"found {origin}, whose config.json asks for code of its own ({code[0]}: "
            f"{remote[code[0]]}), which is never run; expected a class of transformers; where "
            f"transformers has one for model_type {kind}, take auto_map out of config.json of a "
            f"copy on your disk and name that folder",
            "weights",
        )
    if quantised := config.get("quantization_config"):
        raise Refusal(
            f"found {origin}, whose weights are quantised ({quantised.get('quant_method')}); "
            f"expected plain numbers; name the model that they were made of, or write them where "
            f"that method is installed: transformers.{[*classes][-1]}.from_pretrained({origin!r})"
            f".dequantize().save_pretrained(other), and name that folder",
            "weights",
        )
    saved = " ".join(map(str, config.get("architectures") or []))
    has = {name: table[kind] for name, table in tables.items() if kind in table}
    own = [name for name in has if has[name] == saved]
    # Some types have both classes, BERT for one: what was saved says which one was trained.
    fit = next((name for part, name in FITS.items() if part in saved), *own[:1] or [None])
    what = NOT_ONE.get(saved, None if fit or "For" not in saved else NOT_ONE["For"])
    if config.get("is_encoder_decoder") and "ForCausalLM" not in saved:
        what = NOT_ONE["encoder-decoder"]
    if what:
        raise Refusal(
            f"found {origin}, which was saved as {saved}, {what[0]}; expected a masked or causal "
            f"language model; take {what[1]}",
            "weights",
        )
    possible = [name for name in has if fit in (None, name)]
    if asked in possible or (not asked and len(possible) == 1):
        return asked or possible[0]
    if not possible:
        way = "correct model_type in its config.json, or take another model"
    elif asked:
        way = "set it"
    elif saved:
        way = "take it with its output layer"
    else:
        lines = " or ".join(f'"architectures": ["{made}"]' for made in has.values())
        way = f"write {lines} into its config.json"
    expected = " or ".join(possible) or "a language model that transformers has a class for"
    raise Refusal(
        f"found {f'{asked} for ' if asked else ''}{origin}, of model_type {kind}, which was saved "
        f"as {saved or 'nothing'}; expected {expected}; {way}",
        "objective" if asked else "weights",
    )
