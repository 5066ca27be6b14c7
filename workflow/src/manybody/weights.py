"""A model's weights as safetensors, and the checkpoints of a finished run."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as as_bytes
from torch import Tensor
from torch.overrides import TorchFunctionMode

from manybody import models
from manybody.artifacts import ArtifactError, Manifest, atomic, read_json

# What keeps a tensor's shape where the other arguments are numbers
UNSHAPED = {"mul", "div", "sub", "__mul__", "__rmul__", "__truediv__", "__sub__"}
UNSHAPED |= {"uniform_", "normal_", "zero_", "fill_", "kaiming_uniform_"}
KEY = "manybody"  # several metadata keys would be written in a random order


def tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, detached; one shared by several modules comes once."""
    found: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        found.setdefault(id(tensor), (name, tensor.detach()))
    return dict(found.values())


def save(path: str | Path, model: torch.nn.Module, about: dict) -> None:
    """Writes the weights of `model` and the JSON document `about`; equal input, equal bytes."""
    write_tensors(path, tensors(model), about)


def write_tensors(path: str | Path, named: dict[str, Tensor], about: dict) -> None:
    """Writes tensors and one JSON document to a safetensors file, atomically."""
    document = json.dumps(about, sort_keys=True, ensure_ascii=False, allow_nan=False)
    named = {name: tensor.cpu().contiguous() for name, tensor in named.items()}
    with atomic(path) as temporary:
        # Not `save_file`, whose own temporary file a killed writer would leave for ever.
        temporary.write_bytes(as_bytes(named, {KEY: document}))


def read_tensors(path: str | Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict]:
    """Tensors and JSON document of a file that `write_tensors` wrote, else `ArtifactError`."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as opened:
            # The file's own tensors may start anywhere; copies are aligned like any other tensor,
            # so that vectorised arithmetic rounds the same way.
            named = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
            metadata = opened.metadata() or {}
        return named, json.loads(metadata[KEY])
    except KeyError:
        raise ArtifactError(
            f"{path} holds tensors but no metadata under {KEY!r}: not written here"
        ) from None
    except (OSError, ValueError, TypeError, RecursionError, SafetensorError) as error:
        raise ArtifactError(f"{path} is not a readable safetensors file: {error}") from error


def load_into(path: str | Path, model: torch.nn.Module) -> dict:
    """Copies the weights in `path` into `model`; returns the document saved with them.

    `ArtifactError` names the first tensor that is missing, superfluous or of another shape.
    """
    named, about = read_tensors(path)
    copy_into(model, named, path)
    return about


def copy_into(model: torch.nn.Module, named: dict[str, Tensor], origin: str | Path) -> None:
    """Copies `named` into the parameters and buffers of `model`; they must match exactly."""
    own = tensors(model)
    for name in sorted(own.keys() ^ named.keys()):
        side = "lacks" if name in own else "holds, but the model lacks,"
        raise ArtifactError(f"{origin} {side} the tensor {name!r}; it belongs to another model")
    for name, tensor in own.items():
        if (tensor.shape, tensor.dtype) != (named[name].shape, named[name].dtype):
            raise ArtifactError(
                f"{origin}: {name} is {named[name].dtype} {tuple(named[name].shape)}, the model's "
                f"is {tensor.dtype} {tuple(tensor.shape)}; it belongs to another model"
            )
        tensor.copy_(named[name])


def checkpoint_steps(manifest: str | Path | Manifest) -> list[int]:
    """Steps whose weights a finished run kept, ascending."""
    return list(_run(manifest).about["steps"])


def load_model(manifest: str | Path | Manifest, step: int | str = "last", device: str = "cpu"):
    """The model of a finished run at checkpoint `step` ("last" or a kept step), in eval mode.

    Raises `ArtifactError` if that step was not kept or a file was altered.
    """
    run = _run(manifest)
    steps = checkpoint_steps(run)
    step = steps[-1] if step == "last" else step
    if step not in steps:
        kept = ", ".join(map(str, steps))
        raise ArtifactError(f"{run.path}: step {step} was not kept; kept are {kept}")
    path = run.file(f"step-{step}.safetensors")
    with torch.random.fork_rng(devices=[]):
        model = models.build(_description(run, path))
    load_into(path, model)
    return model.to(device).eval()


def _description(run: Manifest, path: Path) -> dict:
    """What the run says its model is, if the tensors in `path` have the shapes of such a model.

    They are compared before memory is taken for weights of that size.
    """
    description = run.about["description"]
    if not isinstance(description, dict):
        raise ArtifactError(f"{run.path} describes no model: found {description!r}")
    if "model.json" in run.names() and read_json(run.file("model.json")) != description:
        raise ArtifactError(f"{run.path}: model.json beside it describes another model")
    shapes = _shapes(path)
    most = max(max((1, *shape)) for shape in [*shapes.values(), [len(shapes)]])
    for name, size in description.items():
        if isinstance(size, int) and size > most:
            raise ArtifactError(
                f"{run.path} says that {name} is {size}, but no tensor in {path} is larger than "
                f"{most} along any side; it belongs to another model"
            )
    try:
        with torch.device("meta"), _WithoutNumbers():
            wanted = {name: list(t.shape) for name, t in tensors(models.build(description)).items()}
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ArtifactError(f"{run.path} describes no model: {error}") from error
    for name in sorted(wanted.keys() | shapes.keys()):
        if wanted.get(name) != shapes.get(name):
            raise ArtifactError(
                f"{path}: the tensor {name} has shape {shapes.get(name, 'none')}, the model that "
                f"{run.path} describes has {wanted.get(name, 'none')}; it belongs to another model"
            )
    return description


class _WithoutNumbers(TorchFunctionMode):
    """Leaves out what draws, scales and fills weights on the device meta, which have no numbers.

    There torch would do it in Python, and for that import its compiler, which takes two seconds.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.randn, torch.rand, torch.zeros) and not kwargs:
            return torch.empty(*args)
        weights = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        if len(weights) == 1 and weights[0].is_meta and func.__name__ in UNSHAPED:
            return weights[0]
        return func(*args, **kwargs)


def _shapes(path: Path) -> dict[str, list[int]]:
    """The shape of each tensor in a safetensors file, from its header."""
    try:
        with safe_open(path, framework="numpy") as opened:
            names = opened.keys()
            return {name: opened.get_slice(name).get_shape() for name in names}
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        raise ArtifactError(f"{path} is not a readable safetensors file: {error}") from error


def history(manifest: str | Path | Manifest):
    """The run's history as a pandas frame, one row per checkpoint and split.

    Columns: step, epoch, learning_rate (of the step to come), split (train: mean over the batches
    since the last checkpoint; validation), loss (nats per predicted token), loss_se (over
    sequences; NaN for train), accuracy, tokens (predicted: seen so far for train, in the set for
    validation).
    """
    from pyarrow import parquet

    path = _run(manifest).file("history.parquet")
    return parquet.read_table(path, page_checksum_verification=True).to_pandas()


def checkpoint_at_loss(manifest: str | Path | Manifest, target: float) -> int:
    """The kept step whose validation loss (nats) is nearest to `target`; the earlier of equals.

    It stops a strong generator at a weak one's loss, so that the two differ in order of
    interaction but not in quality. The loss reached may differ from `target` by the spacing of
    the checkpoints: `history` has it.
    """
    table = history(manifest)
    table = table[table["split"] == "validation"].sort_values("step", kind="stable")
    return int(table["step"].iloc[int((table["loss"] - target).abs().argmin())])


def chosen_step(
    manifest: str | Path | Manifest, step: int | str | dict, reference: str | Path | None = None
) -> int:
    """The kept step that a config's `step` means: "last", a number, or {"loss_of": ...}.

    The last takes the checkpoint nearest to the final validation loss of the run at `reference`.
    """
    if isinstance(step, dict):
        final = Manifest.read(reference, "model").about["final"]
        return checkpoint_at_loss(manifest, final["validation_loss"])
    return checkpoint_steps(manifest)[-1] if step == "last" else step


def _run(manifest: str | Path | Manifest) -> Manifest:
    return manifest if isinstance(manifest, Manifest) else Manifest.read(manifest, "model")
