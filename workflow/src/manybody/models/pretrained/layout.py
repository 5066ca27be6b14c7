"""The files of one checkpoint in `save_pretrained` layout: config.json and safetensors.

Nothing pickled is opened and no code beside the weights runs.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError, safe_open

from manybody.io.atomic import ArtifactError, read_json
from manybody.io.refusal import Refusal

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
# Files of weights, and not those of an optimizer, a scheduler or a random generator beside them.
WEIGHTS = re.compile(
    r"(?!training_args|optimizer|scheduler|rng_state|random_states|scaler)"
    r".*\.(safetensors|bin|pt|pth|ckpt|pkl|pickle|msgpack|h5|gguf)$"
)
# What torch.compile and the wrappers of parallel training put into the names of tensors.
WRAPPERS = r"\b(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|module)\."
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
    "For": ("which predicts no tokens of a vocabulary", "the language model that it was made of"),
    "encoder-decoder": ("an encoder-decoder, which reads two sequences", "another model"),
}
CLASSES = {"masked": "AutoModelForMaskedLM", "next-token": "AutoModelForCausalLM"}
# Keys of config.json that say how a file was made or read, not what the model is.
BOOKKEEPING = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache"}


class CheckpointError(Refusal):
    """The files of one checkpoint are not whole."""


class Layout(NamedTuple):
    """A whole checkpoint: its config, and of each tensor its type, its shape and its file."""

    config: dict
    tensors: dict[str, tuple[str, list[int], str]]


def small_files(names: Iterable[str], origin: str) -> list[str]:
    """The files of a checkpoint that say what the others are.

    `Refusal` where there is no config.json or no safetensors. `origin` is what the checkpoint is
    called.
    """
    names = set(names)
    if ADAPTER in names:
        raise Refusal(
            f"found {origin}, which is an adapter (LoRA or the like) of another model; expected "
            f"the weights of both in one; add it to them: peft.AutoPeftModelForCausalLM"
            f".from_pretrained({origin!r}).merge_and_unload().save_pretrained(other), and name "
            f"that folder",
            "weights",
        )
    if CONFIG not in names:
        raise Refusal(
            f"found {origin}, which has no config.json; expected a checkpoint in save_pretrained "
            f"layout; save the model with model.save_pretrained(folder)",
            "weights",
        )
    if names & {WHOLE, INDEX}:
        return [CONFIG] if WHOLE in names else [CONFIG, INDEX]
    others = sorted(filter(WEIGHTS.match, names))
    held = f"but only {', '.join(others[:3])}" if others else "and no other weights"
    raise Refusal(
        f"found {origin}, which has no model.safetensors {held}; expected safetensors, as reading "
        f"pickled weights can run code; convert them elsewhere, in a container without network: "
        f"transformers.AutoModelForCausalLM (or AutoModelForMaskedLM).from_pretrained({origin!r})"
        f".save_pretrained(other), and name that folder",
        "weights",
    )


def shards(names: Iterable[str], index: dict | None, origin: str) -> list[str]:
    """The safetensors files of a checkpoint; `index` is what its index file says, None without.

    `CheckpointError` where one is missing.
    """
    if index is None:
        return [WHOLE]
    listed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(listed, dict) or not listed:
        raise CheckpointError(f"{origin}: {INDEX} lists no tensors")
    found = sorted(set(map(str, listed.values())))
    if missing := sorted(set(found) - set(names)):
        raise CheckpointError(
            f"{origin}: of {len(found)} files of weights {', '.join(missing)} is missing"
        )
    return found


def read(folder: str | Path, origin: str) -> Layout:
    """Contents of the checkpoint in a folder, from its small files and the heads of the others.

    `Refusal` where it is no checkpoint in this layout, `CheckpointError` where a file of it is
    missing, cut short or lacks a tensor.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise Refusal(
            f"found {origin}, which is no folder; expected one in save_pretrained layout; correct "
            f"the path",
            "weights",
        )
    names = [path.name for path in folder.iterdir() if path.is_file()]
    small = small_files(names, origin)
    try:
        config, *index = (read_json(folder / name) for name in small)
    except ArtifactError as error:
        raise CheckpointError(f"{origin}: {error}; save or copy it again") from error
    index = index[0] if index else None
    found: dict[str, tuple[str, list[int], str]] = {}
    for shard in shards(names, index, origin):
        try:
            with safe_open(folder / shard, framework="numpy") as opened:
                for name in opened.keys():  # noqa: SIM118
                    part = opened.get_slice(name)
                    found[name] = (part.get_dtype(), list(part.get_shape()), shard)
        except (OSError, ValueError, TypeError, SafetensorError) as error:
            raise CheckpointError(
                f"{origin}: {shard} is cut short or no safetensors file ({error}); expected "
                f"a whole one; save or copy it again"
            ) from error
    for name, shard in sorted(index["weight_map"].items()) if index else ():
        if name not in found or found[name][2] != shard:
            raise CheckpointError(f"{origin}: {shard} lacks the tensor {name}, which {INDEX} lists")
    if not isinstance(config, dict):
        raise CheckpointError(f"{folder / CONFIG} holds no mapping")
    return Layout(config, found)


def unwrapped(names: Iterable[str]) -> dict[str, str]:
    """The names of tensors without marks of wrappers and without what all begin with."""
    short = {name: re.sub(WRAPPERS, "", name) for name in names}
    parts = zip(*(left.split(".") for left in short.values()), strict=False)
    lead = "".join(f"{part[0]}." for part in takewhile(lambda part: len(set(part)) == 1, parts))
    return {name: left.removeprefix(lead) for name, left in short.items()}


def check_class(config: dict, objective: str, origin: str) -> None:
    """`Refusal` unless transformers itself has a class for this config and objective, and the
    weights are those of such a class."""
    # Some types have both classes, BERT for one: what was saved says which one was trained.
    fit, saved, tables = _trained_for(config, origin, CLASSES[objective])
    kind = config.get("model_type")
    if kind not in tables[objective]:
        other = next((name for name, table in tables.items() if kind in table), None)
        hint = f"objective: {other}, which it has" if other else "another model"
        raise Refusal(
            f"found {objective} for {origin}, of model_type {kind}; expected a model that "
            f"transformers has a class for with {CLASSES[objective]}; take {hint}",
            "objective",
        )
    if fit not in (None, objective):
        raise Refusal(
            f"found {objective} for {origin}, which was saved as {saved}; expected {fit}, as it "
            f"was trained; set it; a causal model has no masked logits",
            "objective",
        )


def objective(config: dict, origin: str) -> str:
    """The objective of a model, `masked` or `next-token`; `Refusal` where its files do not say."""
    fit, saved, tables = _trained_for(config, origin, *CLASSES.values())
    if fit is None:
        kind = config.get("model_type")
        classes = [table[kind] for table in tables.values() if kind in table]
        way = f'write "architectures": ["{classes[0]}"] or ["{classes[-1]}"] into its config.json'
        raise Refusal(
            f"found {origin}, of model_type {kind}, which was saved as {saved or 'nothing'}; "
            f"expected a masked or causal language model of transformers' own classes; "
            f"{way if classes else 'take another model'}",
            "weights",
        )
    return fit


def _trained_for(config: dict, origin: str, *classes: str) -> tuple[str | None, str, dict]:
    """The objective of the class that a model was saved as, if it shows, that class, and by
    objective the class that transformers has for each model_type.

    `Refusal` where the class is for something else, and for what none of `classes` reads: code
    beside the weights, and weights that are no plain numbers.
    """
    from transformers.models.auto import modeling_auto

    tables = {
        "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "next-token": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    }
    kind, remote = config.get("model_type"), config.get("auto_map") or {}
    if asked := sorted(set(remote) & {"AutoConfig", "AutoModel", *classes}):
        raise Refusal(
            f"found {origin}, whose config.json asks for code of its own ({asked[0]}: "
            f"{remote[asked[0]]}), which is never run; expected a class of transformers; where "
            f"transformers has one for model_type {kind}, take auto_map out of config.json of a "
            f"copy on your disk and name that folder",
            "weights",
        )
    if quantised := config.get("quantization_config"):
        raise Refusal(
            f"found {origin}, whose weights are quantised ({quantised.get('quant_method')}); "
            f"expected plain numbers; name the model that they were made of, or write them where "
            f"that method is installed: transformers.{classes[-1]}.from_pretrained({origin!r})"
            f".dequantize().save_pretrained(other), and name that folder",
            "weights",
        )
    saved = " ".join(config.get("architectures") or [])
    has = [name for name, table in tables.items() if kind in table]
    own = [name for name in has if tables[name][kind] == saved]
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
    return fit or (has[0] if len(has) == 1 else None), saved, tables


def essential(config: dict) -> dict:
    """A config's keys of the model, without those on how its file was made."""
    return {key: value for key, value in config.items() if key not in BOOKKEEPING}
