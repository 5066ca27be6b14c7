"""The command `manybody`: what can be asked of a model in a folder, without a config."""

import argparse
import sys
from pathlib import Path


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

    A hidden folder beside them keeps what was measured until all is done. `Refusal` says what of
    the model or the text cannot be used.
    """
    from manybody.io.tables import write_csv
    from manybody.measure import own_model
    from manybody.papers import style
    from manybody.papers.simplicity.spectra import Spectra
    from manybody.papers.your_model import map as passage_map, spectrum as orders_drawn

    parts, passage = out.with_name(f".{out.name}.parts"), out.with_name(f"{out.name}-map")
    asked = model, text, length, orders, forwards, parts
    with own_model.measured(*asked) as (table, about, passed_over):
        found = Spectra({0: (table, about)})
        drawings = {
            out: (orders_drawn, orders_drawn.tables_of([found])),
            passage: (passage_map, passage_map.tables_of(found)),
        }
        for stem, (module, drawing) in drawings.items():
            style.save(module.draw(drawing), stem)
            write_csv(drawing.drawn, stem.with_name(f"{stem.name}.csv"))
    for step, reasons in about.get("suspects", {}).items():
        print(f"step {step} is left out: {'; '.join(reasons)}")
    for said in passed_over:
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
