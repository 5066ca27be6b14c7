"""A model that was trained elsewhere, its checkpoints audited and written as a run."""

import json
import math
from collections import defaultdict
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
from manybody.models.objectives import masked_positions, sequence_sums
from manybody.models.pretrained import audit, layout, series
from manybody.models.pretrained.network import Pretrained, describe
from manybody.training.run_files import clear, history_row, remove_leftovers, write_history

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
    `where`: the record of the series, `downloads`: a folder for its files. The manifest's `steps`
    are those that the audit leaves, `suspects` says of the others why. Raises `Refusal`.
    """
    out = Path(out)
    sequences = Sequences.open(validation)
    tokens = torch.from_numpy(sequences[:TESTED].astype("int64"))
    special = sequences.about.get("special", {})
    said = {**special, "vocabulary": sequences.vocabulary}
    _check_text(sequences, tokens, special)
    kept = where.with_suffix("")
    with lease(kept), lease(out):
        record = series.recorded(where, model["weights"], model.get("steps"), downloads)
        found = record["checkpoints"]
        faults, taken, rows, described = defaultdict(list), {}, [], {}
        with Progress(len(found), "checkpoints", f"read {about['model']}") as progress:
            for step in map(int, found):
                try:
                    with series.opened(record, step) as (folder, origin):
                        whole = layout.read(folder, origin)
                        described[step] = description = {
                            "architecture": model["architecture"]
                        } | describe(whole.config, sequences.length, model["objective"], said)
                        _check_tokens(description, sequences, folder, found, origin)
                        network = Pretrained.read(folder, origin, description).to(device)
                        # Versions of the library write different keys for the same.
                        meant = json.loads(network.library.config.to_json_string(use_diff=False))
                        meant |= dict.fromkeys(layout.BOOKKEEPING)
                        taken[step] = audit.take(folder, whole, meant, found[str(step)], kept)
                    network.check_objective(tokens.to(device), origin)
                except layout.CheckpointError as error:
                    if not model.get("audit", True) or len(found) == 1:
                        raise
                    faults[step].append(str(error))
                    progress.update(1)
                    continue
                rows.append(_tested(network, tokens, step))
                del network  # one in memory at a time
                progress.update(1, loss=rows[-1]["loss"])
        if model.get("audit", True):
            for step, reasons in audit.suspects(
                taken, {row["step"]: (row["loss"], row["loss_se"]) for row in rows}
            ).items():
                faults[step] += reasons
        good = [row for row in rows if row["step"] not in faults]
        if not good:
            raise Refusal(
                "found no checkpoint that can be what its name says (step "
                + "; ".join(f"{step}: {', '.join(why)}" for step, why in sorted(faults.items()))
                + "); expected at least one; save or copy them again (audit: off in a config reads "
                "all)",
                "weights",
            )
        remove_leftovers(out)
        clear(out, Resume(out / "resume", {}))
        last = good[-1]
        description = described[last["step"]]
        write_json(out / "model.json", description)
        write_history(out / "history.parquet", rows)
        if last["loss"] >= math.log(sequences.vocabulary):
            print(
                f"{about['model']}: its loss on this text at step {last['step']}, "
                f"{last['loss']:.2f} nats a token, is no less than that of a guess, log |V| = "
                f"{math.log(sequences.vocabulary):.2f}: if it was trained, look whether weights, "
                f"tokenizer and text belong together",
                flush=True,
            )
        told = {
            **about,
            "description": description,
            "seed": seed,
            "steps": [row["step"] for row in good],
            "suspects": {str(step): reasons for step, reasons in sorted(faults.items())},
            "series": record,
            "order": None,
            "final": {f"validation_{key}": last[key] for key in ("loss", "accuracy")}
            if math.isfinite(last["loss"])
            else {},
        }
        write_manifest(out / "manifest.json", "model", ["model.json", "history.parquet"], told)
    return out / "manifest.json"


def _check_tokens(description, sequences, folder: Path, found: dict, origin: str) -> None:
    """`Refusal` of sequences of another tokenizer than the one beside the weights, of tokens beyond
    the model's and, where no tokenizer tells, of output rows beyond |V|, unless they are padding.
    """
    about, size = sequences.about, sequences.vocabulary
    rows = layout.output_rows(description["config"]) or size
    theirs = about.get("special", {}).get("tokens") or about.get("made", {}).get("tokenizer")
    beside = [
        folder,
        folder.parent,
        *folder.parent.glob("tokenizer-*"),
        *(Path(said["folder"]) for said in found.values() if "folder" in said),
    ]
    own = {said["tokens"]: path for path in beside if (said := own_tokenizer.described(path))}
    few = rows - size < PADDING and rows % MULTIPLE == 0
    fits = theirs in own if own and theirs else rows <= size or few
    most = int(sequences.tokens.max())
    if most >= description["vocabulary"] or not fits:
        raise Refusal(
            f"found {origin}, of {rows} tokens"
            + f", with a tokenizer in {', '.join(map(str, own.values()))}" * bool(own)
            + f", but {sequences.path} is of |V| = {size} and holds token {most}; expected "
            "sequences of the model's own tokenizer, as it was trained, without tokens that were "
            "added later; save it beside the weights (and name that folder under `tokenizer` of "
            "the source, where a config has one)",
            "weights",
        )


def _check_text(sequences, tokens: torch.Tensor, special: dict) -> None:
    """Says which share of a text is special tokens: its tokenizer does not know them."""
    inner = slice(len(special.get("before", [])), sequences.length - len(special.get("after", [])))
    share = np.isin(tokens[:, inner].numpy(), special.get("special", [])).mean()
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
        masks = masked_positions(*tokens.shape, min(1.0, MASKS / tokens.shape[1]), SEED)
    sums = sequence_sums(network, tokens, masks)
    total = int(sums.predictions.sum())
    each = sums.loss_sum / sums.predictions.clamp(min=1)
    loss, correct = float(sums.loss_sum.sum()), int(sums.correct.sum())
    error = float(each.std() / len(each) ** 0.5)
    means = loss / max(total, 1), correct / max(total, 1)
    return history_row("validation", step, math.nan, *means, total, error)
