"""The command `manybody`: what can be asked of a model in a folder, without a config."""

import argparse
import hashlib
import shutil
import sys
from pathlib import Path

MOST = 1000  # sequences of a text, half of which are contexts
ANCHORED = {"size": 8, "least": 16}  # positions that are exchanged, and the fewest targets


def main(arguments: list[str] | None = None) -> int:
    """Runs the command with `arguments`, those of the process by default; its exit status."""
    parser = argparse.ArgumentParser(prog="manybody")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser(
        "spectrum",
        help="which orders of interaction a language model uses, along its checkpoints",
        description="Measures the order spectrum of a masked or causal language model on a text, "
        "checkpoint by checkpoint, and draws it. Give the same command again after a stop: it goes "
        "on. docs/your-model.md says how to read the figure.",
    )
    one.add_argument(
        "model",
        metavar="MODEL",
        help="a folder in save_pretrained layout, or a folder of checkpoint-N or step-N",
    )
    one.add_argument("--text", required=True, metavar="FILE", help="a text, or a folder of texts")
    one.add_argument(
        "--length", type=int, default=64, metavar="L", help="tokens of a sequence (%(default)s)"
    )
    one.add_argument(
        "--orders",
        type=int,
        default=3,
        choices=range(1, 5),
        metavar="K",
        help="the largest k of M_k, 1 to 4 (%(default)s)",
    )
    one.add_argument(
        "--forwards",
        type=int,
        default=20_000,
        metavar="N",
        help="sequences that each checkpoint is given at most (%(default)s)",
    )
    one.add_argument(
        "--out",
        type=Path,
        default=Path("spectrum"),
        metavar="STEM",
        help="of the files: STEM.pdf, .png and .csv, and STEM-map of one passage (%(default)s)",
    )
    given = parser.parse_args(arguments)
    from manybody.io.refusal import Refusal

    try:
        spectrum(given.model, given.text, given.length, given.orders, given.forwards, given.out)
    except (Refusal, OSError) as error:
        print(f"manybody: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("manybody: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def spectrum(model: str, text: str, length: int, orders: int, forwards: int, out: Path) -> None:
    """Writes the figure of a model's order spectrum, and what is drawn: `out`.pdf, .png, .csv; of
    one passage which token acts on which as `out`-map.

    A hidden folder beside them keeps sequences, the audit, draws and spectra until all is done.
    `Refusal` says what of the model or the text cannot be used.
    """
    import torch

    from manybody.config.spectra import FEWEST
    from manybody.data import given, own_text, own_tokenizer, tokenizer
    from manybody.io.atomic import read_json, to_json
    from manybody.io.code_digest import code_digest
    from manybody.io.devices import pick
    from manybody.io.lease import lease
    from manybody.io.progress import Progress
    from manybody.io.refusal import Refusal
    from manybody.io.sequences import Sequences
    from manybody.io.tables import read_spectra, write_csv, write_spectra
    from manybody.measure import spectra
    from manybody.models.pretrained import layout, series
    from manybody.papers import style
    from manybody.papers.simplicity.spectra import Spectra
    from manybody.papers.your_model import map as passage_map
    from manybody.papers.your_model import spectrum as orders_drawn
    from manybody.training.series import adopt

    folders = [Path(found["folder"]) for found in series.found(model).values()]
    for folder in folders:
        layout.small_files([path.name for path in folder.iterdir()], str(folder))
    last, whole = folders[-1], Path(model).expanduser()
    objective = layout.objective(read_json(folders[0] / layout.CONFIG), str(folders[0]))
    beside = (last, whole, *reversed(folders))
    own = next((folder for folder in beside if own_tokenizer.described(folder)), last)
    files = {str(path): path.stat().st_mtime_ns for path in given.text_files([text], "--text")}
    code = code_digest(Path(__file__), ("manybody.models.pretrained.network",))
    asked = [list(map(str, folders)), files, length, orders, forwards, code]
    job = hashlib.sha256(to_json(asked).encode()).hexdigest()[:32]
    parts, passage = out.with_name(f".{out.name}.parts"), out.with_name(f"{out.name}-map")
    work, device = parts / job, pick("auto")
    with lease(parts):
        sequences, run = work / "text.parquet", work / "run" / "manifest.json"
        if not sequences.is_file():
            own_text.encode(text, own, length, MOST, sequences, "--text")
        count = min(MOST, len(Sequences.open(sequences)))
        if count < FEWEST:
            raise Refusal(
                f"found {text}, which makes {count} sequences of {length} tokens; expected at "
                f"least {FEWEST}; give a longer text, or a smaller --length",
                "--text",
            )
        if not run.is_file():
            weights = {"architecture": "pretrained", "objective": objective, "weights": model}
            about = {"source": Path(text).name, "model": whole.resolve().name}
            adopt(weights, sequences, run.parent, work / "series.json", work, 0, about, device)
        entry = {
            "kind": "draws",
            "law": "text",
            "steps": "all",
            "orders": orders,
            "first": 0.03,
            "higher": 0.003,
            "forwards": forwards,
            "sequences": count,
            "passage": 0,
        }
        targets = forwards // 2 // 2 ** ANCHORED["size"]
        if targets >= ANCHORED["least"] and length > ANCHORED["size"]:
            entry["anchored"] = {"size": ANCHORED["size"], "targets": targets}
        kept = work / "spectra.parquet"
        if not kept.is_file():
            cost = sum(map(len, spectra.measured(run, "all"))) * forwards
            threads, words = torch.get_num_threads(), tokenizer.decoder(work / "text.json")
            with Progress(cost, "forwards", f"spectrum of {whole.name}") as progress:
                measured = run, sequences, entry, work / "draws", job, device, progress
                write_spectra(kept, *spectra.measure(*measured, threads, words))
        table, about = read_spectra(kept)
        found = Spectra({0: (table, about | {"spectrum": whole.name, "entry": entry})})
        drawings = {
            out: (orders_drawn, orders_drawn.tables_of([found])),
            passage: (passage_map, passage_map.tables_of(found)),
        }
        for stem, (module, drawing) in drawings.items():
            style.save(module.draw(drawing), stem)
            write_csv(drawing.drawn, stem.with_name(f"{stem.name}.csv"))
        shutil.rmtree(parts)
    for step, reasons in about.get("suspects", {}).items():
        print(f"step {step} is left out: {'; '.join(reasons)}")
    for said in series.checkpoints(whole)[1]:
        print(f"passed over: {said}")
    print(f"{found.label}, step {table['step'].max()}, on {about['source']}:")
    for claim in orders_drawn.claims(drawings[out][1]):
        if claim.sentence:
            print(f"  {claim.sentence}")
    for k in found.orders:
        end = found.end(0, "M", k)
        print(f"  M_{k} / Var g = {end['share']:.3g} ± {end['share_se']:.1g} ({end['state']})")
    for stem in (out, passage):
        print(", ".join(f"{stem}.{ending}" for ending in ("pdf", "png", "csv")))
