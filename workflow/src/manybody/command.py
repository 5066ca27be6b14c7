"""The command `manybody`: what can be asked of an alignment or a model, without a config."""

import argparse
import os
import re
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

OPTIONS = "alphabet|format|reference|chain|coverage|occupancy"  # of families


def main(arguments: list[str] | None = None) -> int:
    """Runs the command with `arguments`, those of the process by default; its exit status."""
    parser = argparse.ArgumentParser(prog="manybody")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (
        add_family, add_spectrum, add_jacobian, add_energies, add_mutations, add_generate,
        add_example,
    ):  # fmt: skip
        add(commands)
    given = vars(parser.parse_args(arguments))
    run = given.pop("run")
    # A notebook's shell hands its backend on, of which matplotlib here may know nothing.
    os.environ.pop("MPLBACKEND", None)
    from manybody.io.refusal import Refusal

    try:
        run(**given)
    except (Refusal, OSError) as error:
        # What the config has as `key: value` is an option here, or else of `family`.
        said = re.sub(
            "`file: ([^`]+)`" + r"(?: and `format: \w+`)?" * ("format" not in given),
            r"give \1",
            str(error),
        )
        said = re.sub(
            rf"`({OPTIONS})(?=`|: \w+`):?",
            lambda key: ("`" if key[1] in given else "`manybody family ") + f"--{key[1]}",
            said,
        )
        print(f"manybody: {said}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("manybody: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


# --- A family ------------------------------------------------------------------------------------


def add_family(commands) -> None:
    one = commands.add_parser(
        "family",
        usage="%(prog)s [OPTIONS] FILE",
        help="which sites of a family of proteins, RNA or DNA are in contact, from its alignment",
        description="Fits a pair model to an alignment and writes a folder with a page "
        "(index.html), the scores of all pairs, and the model. Give the same command again after "
        "a stop: it goes on. docs/your-alignment.md says what comes out of it.",
    )
    one.add_argument("file", type=Path, metavar="FILE", help="the alignment, plain or gzip")
    one.add_argument(
        "--structure",
        type=Path,
        metavar="S",
        help="known contacts: a structure (PDB, mmCIF), pairs, distances or a dot-bracket; without "
        "it the SS_cons of a Stockholm file of RNA",
    )
    one.add_argument(
        "--chain", metavar="C", help="chain of the structure (the one most like the record)"
    )
    _add_effects(one)
    one.add_argument(
        "--alphabet",
        choices=("protein", "rna", "dna"),
        help="what the letters are (found in the file)",
    )
    one.add_argument(
        "--format",
        choices=("fasta", "a3m", "stockholm", "clustal", "lines"),
        help="format of the file (found in it)",
    )
    one.add_argument(
        "--reference", metavar="NAME", help="record whose residues name the sites (the first)"
    )
    one.add_argument(
        "--occupancy",
        type=_share,
        default=0.7,
        metavar="P",
        help="a column needs residues in at least this share of the sequences (%(default)s)",
    )
    one.add_argument(
        "--coverage",
        type=_share,
        default=0.5,
        metavar="P",
        help="a sequence needs residues in at least this share of the columns in which the "
        "reference has one (%(default)s)",
    )
    one.add_argument(
        "--identity",
        type=lambda text: _share(text, 1e-9, "above 0, 1 at most"),
        default=0.8,
        metavar="P",
        help="sequences equal in at least this share of columns share one weight (%(default)s)",
    )
    one.add_argument(
        "--separation",
        type=_count,
        metavar="N",
        help="least distance of pairs, in columns (6; RNA, DNA: 4)",
    )
    one.add_argument(
        "--boltzmann",
        action="store_true",
        help="also learn a model from which `manybody generate` draws new sequences",
    )
    one.add_argument(
        "--three-body",
        action="store_true",
        help="also say whether three-body terms predict held-out sequences better",
    )
    one.add_argument(
        "--formats",
        action="store_true",
        help="also write files of adabmDCA, CCMpred and EVcouplings",
    )
    one.add_argument(
        "--threads", type=_count, metavar="N", help="threads of the fit (one for each core)"
    )
    one.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="folder of the results (NAME-family, NAME of the file)",
    )
    one.set_defaults(run=family)


def _share(text: str, least: float = 0.0, bounds: str = "from 0 to 1") -> float:
    with suppress(ValueError):
        if least <= (value := float(text)) <= 1:
            return value
    raise argparse.ArgumentTypeError(f"found {text}, expected a share {bounds}")


def _count(text: str) -> int:
    if not re.fullmatch(r"\d+(_\d+)*", text) or not int(text):
        raise argparse.ArgumentTypeError(f"found {text}, expected a whole number from 1 on")
    return int(text)


def family(
    file: Path,
    structure: Path | None,
    chain: str | None,
    effects: Path | None,
    offset: int,
    format: str | None,
    separation: int | None,
    boltzmann: bool,
    three_body: bool,
    formats: bool,
    threads: int | None,
    out: Path | None,
    **reading,
) -> None:
    """Fits the family in a file, and writes its page, tables, picture and model to the folder
    `out`; reading: options of `data.family.read`. `Refusal` says what cannot be used."""
    from manybody.measure import family as measured, mutations
    from manybody.report import family as page

    threads = threads or len(os.sched_getaffinity(0))
    found, truth = measured.opened(file, structure, chain, form=format, threads=threads, **reading)
    name = found.about["source"]
    folder = out or Path(f"{name}-family")
    page.refuse_overwriting([file, structure, effects], [folder / one for one, _ in page.FILES])
    for said in (*found.about["said"], *(truth.said if truth else []), measured.memory(found)):
        print(f"{name}: {said}")
    if effects:  # refused before the fit, if it has to be
        mutations.effects(measured.blank(found), effects, offset)
    model = measured.fitted(found, folder / measured.MODEL, threads, f"Fitting {name}")
    every = folder / measured.ALL_COLUMNS
    scored = measured.of_all_columns(found, model, every, threads, f"Fitting {name}")
    result = measured.found_in(found, model, truth, separation, scored)
    measured.write_tables(result, folder, formats)
    page.draw(result, folder)
    asked = model, found.tokens, found.weights, effects, offset, folder / page.SCAN
    agreement = page.write_scan(*asked)
    parts = [("Mutations", [page.SCANNED, *agreement], page.SCAN)]
    if boltzmann:
        parts.append(("New sequences", [measured.learned(found, model, folder, threads)], None))
    if three_body:
        parts.append(("Three-body terms", [measured.three_body(found, threads)], None))
    record = measured.record(result) | {"effects": agreement, "formats": formats}
    print(page.write(folder, record, shlex.join(["manybody", *sys.argv[1:]]), parts))
    for sentence in (*measured.answers(record), *(said for _, [said], _ in parts[1:])):
        print(f"  {sentence}")
    if record["brackets"]:
        print(record["record"], record["brackets"], sep="\n")


# --- A language model ----------------------------------------------------------------------------


def add_spectrum(commands) -> None:
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
    one.add_argument(
        "--text",
        required=True,
        metavar="FILE",
        help="a text, sequences in FASTA or an alignment, or a folder of them",
    )
    one.add_argument(
        "--length",
        type=_count,
        metavar="L",
        help="tokens of a sequence (64; for proteins, RNA and DNA the median length)",
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
        type=_count,
        default=20_000,
        metavar="N",
        help="upper limit of forward passes of a checkpoint, counted in sequences (%(default)s)",
    )
    _add_stem(one, "spectrum", "STEM.pdf, .png, .csv, and the same of one passage as STEM-map")
    one.set_defaults(run=spectrum)


def _add_stem(one: argparse.ArgumentParser, stem: str, made: str) -> None:
    one.add_argument(
        "--out",
        type=lambda text: Path(text) if Path(text).name else Path(text, stem),
        default=Path(stem),
        metavar="STEM",
        help=f"writes {made} (%(default)s)",
    )


def spectrum(
    model: str, text: str, length: int | None, orders: int, forwards: int, out: Path
) -> None:
    """Writes the figure of a model's order spectrum, and what is drawn: `out`.pdf, .png, .csv; of
    one passage which token acts on which as `out`-map.

    A hidden folder beside them keeps what was measured until all is done. `Refusal` says what of
    the model or the text cannot be used.
    """
    from manybody.io.tables import write_csv
    from manybody.measure import own_model
    from manybody.measure.half_times import Spectra
    from manybody.papers import style
    from manybody.papers.your_model import map as passage_map, spectrum as orders_drawn

    parts, passage = out.with_name(f".{out.name}.parts"), out.with_name(f"{out.name}-map")
    asked = (model, text, length, orders, forwards, parts)
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
        print(said)
    last = table["step"][table["state"] != "suspect"].max()
    print(f"{found.label}, step {last}, on {about['source']}:")
    for claim in orders_drawn.claims(drawings[out][1]):
        if claim.sentence:
            print(f"  {claim.sentence}")
    for k in found.orders:
        end = found.end(0, "M", k)
        print(f"  M_{k} / Var g = {end['share']:.3g} ± {end['share_se']:.1g} ({end['state']})")
    for stem in (out, passage):
        print(", ".join(f"{stem}.{ending}" for ending in ("pdf", "png", "csv")))


def add_jacobian(commands) -> None:
    one = commands.add_parser(
        "jacobian",
        help="which residues of a sequence act on which in a protein, RNA or DNA language model",
        description="Measures the categorical Jacobian of a masked language model on a sequence, "
        "scores pairs of residues as contacts, and says how much pairs alone do not explain. Give "
        "the same command again after a stop: it goes on.",
    )
    one.add_argument("model", metavar="MODEL", help="a folder, as for manybody spectrum")
    one.add_argument(
        "sequence",
        metavar="SEQUENCE",
        help="letters, or a file of sequences, of which the first is taken",
    )
    one.add_argument(
        "--structure",
        metavar="FILE",
        help="a structure, or a list of contacts or distances, to compare with",
    )
    one.add_argument(
        "--chain", metavar="C", help="chain of the structure (the one most like the record)"
    )
    one.add_argument(
        "--family",
        type=Path,
        metavar="FOLDER",
        help="the results of `manybody family` for this sequence, to compare with",
    )
    one.add_argument(
        "--masked",
        action="store_true",
        help="also mask the target, which takes L times the passes (done without the option if "
        "these are at most 20,000)",
    )
    _add_stem(one, "jacobian", "the scores as STEM.csv")
    one.set_defaults(run=jacobian)


def jacobian(
    model: str,
    sequence: str,
    out: Path,
    structure: str | None = None,
    chain: str | None = None,
    family: Path | None = None,
    masked: bool = False,
) -> None:
    """Writes the scores of all pairs of residues by a model's categorical Jacobian as `out`.csv,
    and prints how many of the best are contacts, and what pairs alone do not explain.

    A hidden folder beside it keeps what was measured until all is done. `Refusal` says what of the
    model or the sequence cannot be used.
    """
    from manybody.measure import contacts, jacobian as measure, known_contacts
    from manybody.report import family as page

    page.refuse_overwriting([sequence, structure], [out.with_name(f"{out.name}.csv")])
    asked, parts = measure.opened(model, sequence), out.with_name(f".{out.name}.parts")
    about, length = asked.about, len(asked.sites)
    # What cannot be compared is refused before anything is measured.
    truth = structure and known_contacts.read(structure, about, length, chain)
    others = {"family": measure.of_family(family, about)} if family else {}
    scores, beyond = measure.measured(asked, masked, parts)
    maps = {form: contacts.apc(each) for form, each in scores.items()} | others
    frame = contacts.pairs(scores["unmasked"])
    i, j = frame["i"] - 1, frame["j"] - 1
    frame = frame.assign(**{name: each[i, j] for name, each in maps.items()})
    print(f"{asked.network.about.label} on {about['reference']}, {length} residues:")
    print("\n".join(f"  {said}" for said in about["said"]))
    if truth:
        real, known, distances, more = truth
        frame["distance"] = distances[i, j]
        compared = measure.compared(maps, real, known, about["kind"])
        print("\n".join(f"  {said}" for said in [*more["said"], *compared]))
    contacts.write_list(out.with_name(f"{out.name}.csv"), frame, contacts.site_names(about, length))
    print(
        f"  At most {beyond['share']:.2g} ± {beyond['share_se']:.1g} of the variance of the logits "
        f"needs three residues or more (M_2 / Var g, {beyond['state']}; half of the residues "
        f"exchanged at random): pairs alone, which are all that a map shows, may miss that much."
    )
    print(f"{out}.csv")
    shutil.rmtree(parts)


# --- A family's model ----------------------------------------------------------------------------


def write(made: str, **asked) -> None:
    """Writes `energies`, `mutations` or `generated` by the function of `report.family` that is
    asked so, and prints the sentences that it returns."""
    from manybody.report import family as page

    print(*getattr(page, f"write_{made}")(**asked), sep="\n  ")


def _of_model(commands, name: str, stem: str, help: str, description: str):
    """The parser of a command for a family's model, which makes the files called `stem`."""
    one = commands.add_parser(name, help=help, description=description)
    one.set_defaults(run=write, made=stem)
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
        "--out",
        type=Path,
        default=Path(stem),
        metavar="STEM",
        help="name of the files without ending (%(default)s)",
    )
    return one


def add_energies(commands) -> None:
    one = _of_model(
        commands,
        "energies",
        "energies",
        "how likely sequences are under a family's model",
        "Writes the energies of the sequences in a file, in nats; low ones are likely. Those "
        "that are not aligned are aligned to the profile of the family.",
    )
    one.add_argument(
        "fasta",
        type=Path,
        metavar="FASTA",
        help="the sequences, aligned or not: FASTA, or a format of `family`",
    )


def add_mutations(commands) -> None:
    one = _of_model(
        commands,
        "mutations",
        "mutations",
        "what every single mutation changes, beside measured effects",
        "Writes and draws the change of log p, in nats, by each single mutation of the reference "
        "sequence; with --effects how well it ranks measured effects.",
    )
    _add_effects(one)


def _add_effects(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--effects",
        type=Path,
        metavar="T",
        help="a table with columns mutant (A24G or p.Ala24Gly, joined by ':') and DMS_score",
    )
    one.add_argument(
        "--offset",
        type=int,
        default=0,
        metavar="N",
        help="what turns a position of the table into a residue number, when added (%(default)s)",
    )


def add_generate(commands) -> None:
    one = _of_model(
        commands,
        "generate",
        "generated",
        "new sequences from a family's model, and what they are",
        "Draws sequences from a model whose Boltzmann learning reached its target, and compares "
        "them with those of the family.",
    )
    one.add_argument(
        "-n", dest="count", type=int, default=1000, metavar="N", help="sequences (%(default)s)"
    )
    one.add_argument("--sweeps", type=int, metavar="T", help="sweeps of each chain (as needed)")
    one.add_argument("--seed", type=int, default=0, metavar="N", help="(%(default)s)")


# --- Files to try it on --------------------------------------------------------------------------


def add_example(commands) -> None:
    one = commands.add_parser(
        "example",
        help="small files to try `family` and `spectrum` on",
        description="Copies a family of RNA with its structure, a text, and a small GPT at three "
        "steps of its training to a folder, and prints commands that read them.",
    )
    one.add_argument(
        "folder", type=Path, nargs="?", default=Path("manybody-example"), metavar="FOLDER",
        help="folder to make (%(default)s)",
    )  # fmt: skip
    one.set_defaults(run=example)


def example(folder: Path) -> None:
    """Copies the example files to a folder; an `OSError` says that it is there."""
    if folder.exists():
        raise FileExistsError(
            f"FOLDER: found {folder}, which is there already; expected a new folder; use what is "
            f"in it, or write to another: manybody example {shlex.quote(f'{folder}-2')}"
        )
    shutil.copytree(Path(__file__).with_name("example"), folder)
    quoted = shlex.quote(str(folder))
    print(
        f"manybody family {quoted}/family.fasta --structure {quoted}/family.db",
        f"manybody spectrum {quoted}/model --text {quoted}/text.txt --length 16 --forwards 2000",
        sep="\n",
    )
