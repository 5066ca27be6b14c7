"""The files of one checkpoint in `save_pretrained` layout: config.json and safetensors.

Nothing pickled is opened and no code beside the weights runs.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError, safe_open

from manybody.io.atomic import ArtifactError, read_json
from manybody.io.refusal import Refusal

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = re.compile(r".*\.(bin|pt|pth|ckpt|pkl|pickle|msgpack|h5)$")
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
    if CONFIG not in names:
        raise Refusal(
            f"found {origin}, which has no config.json; expected a checkpoint in save_pretrained "
            f"layout; save the model with model.save_pretrained(folder)",
            "weights",
        )
    if names & {WHOLE, INDEX}:
        return [CONFIG] if WHOLE in names else [CONFIG, INDEX]
    pickled = sorted(name for name in names if PICKLED.match(name))
    held = f"but only {', '.join(pickled[:3])}" if pickled else "and no other weights"
    raise Refusal(
        f"found {origin}, which has no model.safetensors {held}; expected safetensors, as reading "
        f"pickled weights can run code; convert them elsewhere, in a container without network: "
        f"transformers.AutoModel...from_pretrained(folder).save_pretrained(other, "
        f"safe_serialization=True); and name that folder",
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
    index = read_json(folder / INDEX) if INDEX in small else None
    found: dict[str, tuple[str, list[int], str]] = {}
    for shard in shards(names, index, origin):
        try:
            with safe_open(folder / shard, framework="numpy") as opened:
                for name in opened.keys():  # noqa: SIM118
                    part = opened.get_slice(name)
                    found[name] = (part.get_dtype(), list(part.get_shape()), shard)
        except (OSError, ValueError, TypeError, SafetensorError) as error:
            raise CheckpointError(
                f"{origin}: {shard} is cut short or no safetensors file ({error})"
            ) from error
    for name, shard in sorted(index["weight_map"].items()) if index else ():
        if name not in found or found[name][2] != shard:
            raise CheckpointError(f"{origin}: {shard} lacks the tensor {name}, which {INDEX} lists")
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict):
        raise ArtifactError(f"{folder / CONFIG} holds no mapping")
    return Layout(config, found)


def check_class(config: dict, objective: str, origin: str) -> None:
    """`Refusal` unless transformers itself has a class for this config and objective."""
    from transformers.models.auto import modeling_auto

    kind = config.get("model_type")
    remote = config.get("auto_map") or {}
    if asked := sorted(set(remote) & {"AutoConfig", "AutoModel", CLASSES[objective]}):
        raise Refusal(
            f"found {origin}, whose config.json asks for code of its own ({asked[0]}: "
            f"{remote[asked[0]]}), which is never run; expected a class of transformers; where "
            f"transformers has one for model_type {kind}, take auto_map out of config.json of a "
            f"copy on your disk and name that folder",
            "weights",
        )
    tables = {
        "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "next-token": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    }
    if kind not in tables[objective]:
        other = next((name for name, table in tables.items() if kind in table), None)
        hint = f"objective: {other}, which it has" if other else "another model"
        raise Refusal(
            f"found {objective} for {origin}, of model_type {kind}; expected a model that "
            f"transformers has a class for with {CLASSES[objective]}; take {hint}",
            "objective",
        )
    # Some types have both classes, BERT for one: what was saved says which one was trained.
    fit, saved = _trained_for(config)
    if fit not in (None, objective):
        raise Refusal(
            f"found {objective} for {origin}, which was saved as {saved}; expected {fit}, as it "
            f"was trained; set it; a causal model has no masked logits",
            "objective",
        )


def objective(config: dict, origin: str) -> str:
    """The objective of a model, `masked` or `next-token`; `Refusal` where its files do not say."""
    fit, saved = _trained_for(config)
    if fit is None:
        raise Refusal(
            f"found {origin}, which was saved as {saved or 'nothing'}; expected a masked or causal "
            f"language model; say which it is",
            "objective",
        )
    return fit


def _trained_for(config: dict) -> tuple[str | None, str]:
    """The objective of the class that a model was saved as, if it shows, and that class."""
    saved = " ".join(config.get("architectures") or [])
    if "ForMaskedLM" in saved or "ForPreTraining" in saved:
        return "masked", saved
    if "ForCausalLM" in saved or "LMHeadModel" in saved:
        return "next-token", saved
    return None, saved


def essential(config: dict) -> dict:
    """A config's keys of the model, without those on how its file was made."""
    return {key: value for key, value in config.items() if key not in BOOKKEEPING}
