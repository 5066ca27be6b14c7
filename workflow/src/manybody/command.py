"""The command `manybody`: what can be asked of a model in a folder, without a config."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Runs the command with `arguments`, those of the process by default; its exit status."""
    parser = argparse.ArgumentParser(prog="manybody")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_spectrum, add_energies, add_mutations, add_generate):
        add(commands)
    given = vars(parser.parse_args(arguments))
    run = given.pop("run")
    from manybody.io.refusal import Refusal

    try:
        run(**given)
    except (Refusal, OSError) as error:
        print(f"manybody: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("manybody: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


# --- A language model ----------------------------------------------------------------------------


def add_spectrum(commands) -> None:
    """Adds the command `spectrum` to those of the parser."""
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
    one.set_defaults(run=spectrum)


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


# --- A family's model ----------------------------------------------------------------------------


def _of_model(commands, name: str, stem: str, help: str, description: str):
    """The parser of a command for a family's model."""
    one = commands.add_parser(name, help=help, description=description)
    one.add_argument(
        "model",
        metavar="MODEL",
        help="a folder that `manybody family` made, or a model of adabmDCA or CCMpred (-r)",
    )
    one.add_argument(
        "--alignment",
        type=Path,
        metavar="FASTA",
        help="aligned sequences of the family, a column a site (the folder has them)",
    )
    one.add_argument(
        "--out", type=Path, default=Path(stem), metavar="STEM", help="of the files (%(default)s)"
    )
    return one


def add_energies(commands) -> None:
    """Adds the command `energies` to those of the parser."""
    one = _of_model(
        commands,
        "energies",
        "energies",
        "how likely sequences are under a family's model",
        "Writes the energies of the sequences in a FASTA file, in nats; low ones are likely. Those "
        "that are not aligned are aligned to the profile of the family.",
    )
    one.add_argument("fasta", type=Path, metavar="FASTA", help="the sequences, aligned or not")
    one.set_defaults(run=energies)


def energies(model: str, fasta: Path, alignment: Path | None, out: Path) -> None:
    """Writes `out`.csv. `Refusal` says what cannot be used."""
    from manybody.io.tables import write_csv
    from manybody.measure import mutations

    found, family, _ = mutations.opened(model, alignment)
    table = mutations.energies(found, fasta, family)
    write_csv(table, out.with_name(f"{out.name}.csv"))
    lacking = (table["placed"] == mutations.BY_PROFILE).sum()
    print(f"{len(table)} sequences, {lacking} of them aligned to the family: {out}.csv")
    print(f"  {table['dropped'].sum()} residues are in no column of the model and do not count")


def add_mutations(commands) -> None:
    """Adds the command `mutations` to those of the parser."""
    one = _of_model(
        commands,
        "mutations",
        "mutations",
        "what every single mutation changes, beside measured effects",
        "Writes and draws the change of log p, in nats, by each single mutation of the reference "
        "sequence; with --effects how well it ranks measured effects.",
    )
    one.add_argument(
        "--effects",
        type=Path,
        metavar="T",
        help="a table with columns mutant (A24G, several joined by ':') and DMS_score",
    )
    one.add_argument(
        "--offset",
        type=int,
        default=0,
        metavar="N",
        help="added to its positions they are residue numbers of the reference (%(default)s)",
    )
    one.set_defaults(run=mutations)


def mutations(
    model: str, effects: Path | None, offset: int, alignment: Path | None, out: Path
) -> None:
    """Writes `out`.csv, .pdf and .png, and with a table of effects `out`-effects.csv. `Refusal`
    says what cannot be used."""
    from manybody.io.tables import write_csv
    from manybody.measure import mutations as measured
    from manybody.measure.contacts import site_names
    from manybody.papers import style
    from manybody.papers.your_family import scan

    found, family, weights = measured.opened(model, alignment)
    logs = None if family is None else measured.site_logs(family, weights, found.vocabulary)
    table = effects and measured.effects(found, effects, offset, logs)
    changes, own = measured.scan(found), measured.reference(found)
    write_csv(measured.listed(found, changes), out.with_name(f"{out.name}.csv"))
    sites = site_names(found.about, found.length)
    style.save(scan.draw(changes, own, sites, found.about["alphabet"]), out)
    print(f"{out}.csv, {out}.pdf, {out}.png")
    if table is not None:
        write_csv(table, out.with_name(f"{out.name}-effects.csv"))
        print(f"{out}-effects.csv", *measured.answers(table), sep="\n  ")


def add_generate(commands) -> None:
    """Adds the command `generate` to those of the parser."""
    one = _of_model(
        commands,
        "generate",
        "generated",
        "new sequences from a family's model, and what they are",
        "Draws sequences from a model whose Boltzmann learning reached its target, and compares "
        "them with those of the family.",
    )
    one.add_argument("-n", dest="count", type=int, default=1000, metavar="N", help="(%(default)s)")
    one.add_argument("--sweeps", type=int, metavar="T", help="of a chain (as many as it needs)")
    one.add_argument("--seed", type=int, default=0, metavar="N", help="(%(default)s)")
    one.set_defaults(run=generate)


def generate(
    model: str, count: int, sweeps: int | None, seed: int, alignment: Path | None, out: Path
) -> None:
    """Writes `out`.fasta, and what the sequences are: `out`-statistics.csv, and `out`.csv, .pdf and
    .png. `Refusal` says what cannot be used."""
    import pandas as pd

    from manybody.io.atomic import atomic
    from manybody.io.tables import write_csv
    from manybody.measure import family_statistics, mutations
    from manybody.papers import style
    from manybody.papers.your_family import panel

    found, family, weights = mutations.opened(model, alignment)
    tokens, mixing = family_statistics.generate(found, count, sweeps, seed)
    with atomic(out.with_name(f"{out.name}.fasta")) as temporary:
        rows = mutations.letters_of(tokens, found.about)
        lines = (f">generated-{n}\n{row}\n" for n, row in enumerate(rows, start=1))
        temporary.write_text("".join(lines))
    if family is None:
        print(f"{out}.fasta; give --alignment to compare them with sequences of the family")
        return
    table, points = family_statistics.compared(family, tokens, found.vocabulary, weights, seed)
    points = pd.concat([points, mixing], ignore_index=True)
    write_csv(table, out.with_name(f"{out.name}-statistics.csv"))
    write_csv(points, out.with_name(f"{out.name}.csv"))
    style.save(panel.draw(table, points), out)
    print(f"{out}.fasta, {out}-statistics.csv, {out}.csv, {out}.pdf, {out}.png")
    for row in table.itertuples():
        said = f"correlation {row.correlation:.3f}, slope {row.slope:.2f}"
        print(f"  {row.statistic}: {said}; halves of the natural ones: {row.halves:.3f}")
