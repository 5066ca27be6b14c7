"""The model of a finished run, rebuilt from its manifest and one of its checkpoints."""

import itertools
from pathlib import Path

import torch

from manybody import models
from manybody.io.atomic import ArtifactError, read_json
from manybody.io.checkpoints import as_manifest, checkpoint_steps, heads, load_into, tensors
from manybody.io.devices import pick
from manybody.io.manifest import Manifest
from manybody.io.quick_start import unfilled_weights


def load_model(manifest: str | Path | Manifest, step: int | str = "last", device: str = "cpu"):
    """The model of a finished run at checkpoint `step` ("last" or a kept step), in eval mode;
    `ArtifactError` if that step was not kept or a file was altered."""
    run = as_manifest(manifest)
    steps = checkpoint_steps(run)
    step = steps[-1] if step == "last" else step
    if "series" in run.about:
        known = run.about["series"]["checkpoints"]  # also those that its audit left out
        if str(step) not in known:
            raise ArtifactError(
                f"{run.path}: there is no step {step}; there are {', '.join(known)}"
            )
        model = models.network(run.about["description"]).read_step(run.about, step)
        return model.to(pick(device)).eval()
    if step not in steps:
        kept = ", ".join(map(str, steps))
        raise ArtifactError(f"{run.path}: step {step} was not kept; kept are {kept}")
    path = run.file(f"step-{step}.safetensors")
    with torch.random.fork_rng(devices=[]):
        model = models.build(_description(run, path))
    load_into(path, model)
    return model.to(pick(device)).eval()


def _description(run: Manifest, path: Path) -> dict:
    """The run's description of its model, if the tensors in `path` have the shapes of such a model:
    they are compared before memory is taken for weights of that size."""
    description = run.about["description"]
    if not isinstance(description, dict):
        raise ArtifactError(f"{run.path} describes no model: found {description!r}")
    if "model.json" in run.names() and read_json(run.file("model.json")) != description:
        raise ArtifactError(f"{run.path}: model.json beside it describes another model")
    shapes = {name: shape for name, (_, shape) in heads(path).items()}
    most = max(1, len(shapes), *itertools.chain(*shapes.values()))
    for name, size in description.items():
        if isinstance(size, int) and size > most:
            raise ArtifactError(
                f"{run.path} says that {name} is {size}, but no tensor in {path} is larger than "
                f"{most} along any side; it belongs to another model"
            )
    try:
        with torch.device("meta"), unfilled_weights():
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
