"""A model that was trained elsewhere, its checkpoints audited and written as a run."""

import math
from pathlib import Path

import numpy as np
import torch

from manybody.data import own_tokenizer
from manybody.io.atomic import write_json
from manybody.io.lease import lease
from manybody.io.manifest import write_manifest
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.io.resume import Resume
from manybody.io.sequences import Sequences
from manybody.models.objectives import choose_masks, sequence_sums
from manybody.models.pretrained import audit, layout, series
from manybody.models.pretrained.network import Pretrained, describe
from manybody.training.run_files import clear, remove_leftovers, write_history

TESTED = 32  # validation sequences on which each checkpoint is tested, at most
MASKS = 4  # positions that are masked in each
SEED = 0  # of these
PADDING, MULTIPLE = 512, 64  # rows beyond |V| of a model without a tokenizer that are padding
UNKNOWN = 0.5  # share of a text that may be special tokens


def adopt(
    model: dict,
    validation: str | Path,
    out: str | Path,
    where: Path,
    downloads: Path,
    seed: int,
    about: dict,
    device: str = "cpu",
) -> Path:
    """Writes the checkpoints that `model` (an entry of the config) names as a run; its manifest.

    `validation`: Sequences of the model's tokens, on some of which each checkpoint is tested.
    `where`: the record of the series, `downloads`: the folder for what has to be fetched. The
    manifest's `steps` are those that the audit leaves, `suspects` says of the others what speaks
    against them. Raises `Refusal` for what no model can be read from.
    """
    out = Path(out)
    sequences = Sequences.open(validation)
    tokens = torch.from_numpy(sequences[:TESTED].astype("int64"))
    special = sequences.about.get("special", {})
    _check_text(sequences, tokens, special)
    kept = where.with_suffix("")
    if isinstance(model["weights"], str):
        for said in series.checkpoints(Path(model["weights"]).expanduser())[1]:
            print(f"passed over: {said}", flush=True)
    with lease(kept), lease(out):
        record = series.recorded(where, model["weights"], model.get("steps"), downloads)
        found = record["checkpoints"]
        faults: dict[int, list[str]] = {}
        taken, rows, description = {}, [], None
        with Progress(len(found), "checkpoints", f"read {about['model']}") as progress:
            for step in map(int, found):
                try:
                    with series.opened(record, step) as (folder, origin):
                        whole = layout.read(folder, origin)
                        description = _description(
                            model, whole.config, sequences, special, folder, origin
                        )
                        taken[step] = audit.take(
                            folder, whole, description["config"], found[str(step)], kept
                        )
                        network = Pretrained.read(folder, origin, description).to(device)
                        _check_rows(network.rows, sequences, folder, found, origin)
                    network.check_objective(tokens.to(device), origin)
                except layout.CheckpointError as error:
                    if not model.get("audit", True) or len(found) == 1:
                        raise
                    faults[step] = [str(error)]
                    progress.update(1)
                    continue
                rows.append(_tested(network, tokens, step))
                del network  # one in memory at a time
                progress.update(1, loss=rows[-1]["loss"])
        losses = {row["step"]: (row["loss"], row["loss_se"]) for row in rows}
        if model.get("audit", True):
            for step, reasons in audit.suspects(taken, losses).items():
                faults.setdefault(step, []).extend(reasons)
        for step, reasons in sorted(faults.items()):
            print(f"{found[str(step)]['origin']} is left out: {'; '.join(reasons)}", flush=True)
        steps = [row["step"] for row in rows if row["step"] not in faults]
        if not steps:
            raise Refusal(
                "found no checkpoint that can be what its name says (the log says why); expected "
                "at least one; correct the series, or say audit: off",
                "weights",
            )
        remove_leftovers(out)
        clear(out, Resume(out / "resume", {}))
        write_json(out / "model.json", description)
        write_history(out / "history.parquet", rows)
        last = next(row for row in rows if row["step"] == steps[-1])
        told = {
            **about,
            "description": description,
            "seed": seed,
            "steps": steps,
            "suspects": {str(step): reasons for step, reasons in sorted(faults.items())},
            "series": record,
            "order": None,
            "final": {f"validation_{key}": last[key] for key in ("loss", "accuracy")}
            if math.isfinite(last["loss"])
            else {},
        }
        write_manifest(out / "manifest.json", "model", ["model.json", "history.parquet"], told)
    return out / "manifest.json"


def _description(model, config, sequences, special, folder, origin) -> dict:
    """The document that rebuilds the model; refuses a tokenizer that is not its own."""
    own = own_tokenizer.described(folder)
    theirs = special.get("tokens") or sequences.about.get("made", {}).get("tokenizer")
    if own and theirs and own["tokens"] != theirs:
        raise Refusal(
            f"found {origin}, with a tokenizer of {own['vocabulary']} tokens that are not those of "
            f"{sequences.path} (|V| = {sequences.vocabulary}); expected sequences of the model's "
            f"own tokenizer; name its folder under `tokenizer` of the source",
            "weights",
        )
    said = {**special, "vocabulary": sequences.vocabulary}
    made = describe(config, sequences.length, model["objective"], said)
    most = int(sequences.tokens.max())
    if most >= made["vocabulary"]:
        raise Refusal(
            f"found {origin}, of {made['vocabulary']} tokens, but {sequences.path} holds token "
            f"{most}; expected no token beyond the model's; make the sequences with the tokenizer "
            f"that it was trained with",
            "weights",
        )
    return {"architecture": model["architecture"], **made}


def _check_rows(rows: int, sequences, folder: Path, found: dict, origin: str) -> None:
    """`Refusal` of output rows beyond |V|, unless the tokenizer of the sequences lies beside
    weights of the series, or they are few and fill a multiple."""
    size, beside = sequences.vocabulary, [folder, folder.parent, *folder.parent.glob("tokenizer-*")]
    beside += [Path(said["folder"]) for said in found.values() if "folder" in said]
    own = (own_tokenizer.described(path) or {"tokens": None} for path in beside)
    theirs = sequences.about.get("special", {}).get("tokens", "")
    few = rows - size < PADDING and rows % MULTIPLE == 0
    if rows > size and not few and not any(said["tokens"] == theirs for said in own):
        raise Refusal(
            f"found {origin}, of {rows} tokens, but the sequences are of |V| = {size}; expected "
            f"the same, or the tokenizer of the sequences beside the weights, which shows that it "
            f"is the model's own; save the model's there, and name that folder under `tokenizer` "
            f"of the source",
            "weights",
        )


def _check_text(sequences, tokens: torch.Tensor, special: dict) -> None:
    """Says which share of a text is special tokens: its tokenizer does not know them."""
    ends = len(special.get("before", [])), len(special.get("after", []))
    inner = tokens[:, ends[0] : tokens.shape[1] - ends[1]].numpy()
    share = np.isin(inner, special.get("special", [])).mean()
    said = f"{share:.0%} of the tokens of {sequences.path} are special, such as unknown ones"
    if share > UNKNOWN:
        raise Refusal(
            f"found a text that the tokenizer does not know: {said}; expected text as the model "
            f"was trained on; give such a text, in its letters and case",
            "weights",
        )
    if share > UNKNOWN / 10:
        print(f"{said}: they are neither exchanged nor predicted", flush=True)


def _tested(network: Pretrained, tokens, step: int) -> dict:
    """The row of the history: the loss at the same positions for each checkpoint."""
    masks = None
    if not network.about.causal:
        generator = torch.Generator().manual_seed(SEED)
        share = min(1.0, MASKS / tokens.shape[1])
        masks = choose_masks(*tokens.shape, share, generator)[1].view(len(tokens), -1)
    sums = sequence_sums(network, tokens, masks)
    total = int(sums.predictions.sum())
    each = sums.loss_sum / sums.predictions.clamp(min=1)
    loss = float(sums.loss_sum.sum()) / max(total, 1)
    return {
        "step": step,
        "epoch": math.nan,
        "learning_rate": math.nan,
        "split": "validation",
        "loss": loss,
        "loss_se": float(each.std() / len(each) ** 0.5),
        "accuracy": int(sums.correct.sum()) / max(total, 1),
        "tokens": total,
    }
