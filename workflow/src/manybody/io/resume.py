"""The state of an unfinished run, so that a killed one goes on where it was.

Each state is one safetensors file whose document says which run it belongs to (`identity`), how
far the run had come (`progress`) and the sha256 of all. The two newest are kept, in case of damage.
"""

import hashlib
import json
import logging
import shutil
from pathlib import Path

from torch import Tensor

from manybody.io.atomic import ArtifactError
from manybody.io.checkpoints import read_tensors, write_tensors
from manybody.io.differences import differences

log = logging.getLogger(__name__)
GENERATIONS = 2


class Resume:
    """Saved states in `folder` of the run that `identity` (JSON) describes in full."""

    def __init__(self, folder: str | Path, identity: dict):
        self.folder = Path(folder)
        self.identity = json.loads(json.dumps(identity))

    def save(self, step: int, tensors: dict[str, Tensor], progress: dict) -> None:
        """Writes the state after `step` steps, then removes all but the two newest."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        # Serialised once: with many checkpoints this is most of the time that a save takes.
        text = json.dumps({"identity": self.identity, "progress": {**progress, "step": step}})
        path = self.folder / f"state-{step:012d}.safetensors"
        write_tensors(path, tensors, {"document": text, "sha256": digest(text, tensors)})
        for old in self._states()[GENERATIONS:]:
            old.unlink()

    def load(self) -> tuple[dict[str, Tensor], dict] | None:
        """Tensors and progress of the newest whole state of this very run, or None; the log names
        those that are damaged or belong to other settings."""
        for path in self._states():
            try:
                return self._read(path)
            except ArtifactError as error:
                log.warning("not resumed: %s", error)
        return None

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _states(self) -> list[Path]:
        return sorted(self.folder.glob("state-*.safetensors"), reverse=True)

    def _read(self, path: Path) -> tuple[dict[str, Tensor], dict]:
        tensors, sealed = read_tensors(path)
        if not isinstance(sealed, dict) or sealed.keys() != {"document", "sha256"}:
            raise ArtifactError(f"{path} is not a saved state")
        if digest(sealed["document"], tensors) != sealed["sha256"]:
            raise ArtifactError(f"{path} was altered after it was written")
        document = json.loads(sealed["document"])
        if document["identity"] != self.identity:
            changed = sorted(key for key, *_ in differences(document["identity"], self.identity))
            raise ArtifactError(f"{path} belongs to a run with another {', '.join(changed)}")
        return tensors, document["progress"]


def digest(document: str, tensors: dict[str, Tensor]) -> str:
    found = hashlib.sha256(document.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(memoryview(tensor.detach().cpu().reshape(-1).numpy()).cast("B"))
    return found.hexdigest()
