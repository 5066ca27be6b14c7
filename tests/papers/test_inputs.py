"""Keys of the files that a figure's block asks for, by the names of the config."""

import pytest
from configs import load

from manybody import papers
from manybody.papers import inputs
from manybody.papers.inputs import Maps, Spectrum, distinct, with_files

EVALUATIONS = {
    "bert": {
        "source": "docs", "model": "bert", "seeds": [0, 1],
        "targets": {"n2": {"clone": "n2", "sweep": 5}, "o": {"initial": "n2"}},
    },
    "n2-test": {
        "source": "docs", "model": "n2", "seeds": [0],
        "targets": {"own": {"clone": "n2-norm", "sweep": 5}},
    },
}  # fmt: skip
RECIPE = {"optimizer": {"name": "adamw"}, "learning_rate": 0.1}
CLONE = {"source": "docs", "model": "n2", "sweeps": [5], "chains": 4, "energy": "raw"}
CONFIG = {
    "evaluations": EVALUATIONS,
    "sources": {
        "docs": {}, "potts": {"length": 10}, "family": {}, "spins": {"kind": "potts"},
    },
    "models": {name: {"training": RECIPE} for name in ("bert", "n2", "map", "n1", "pair", "true")},
    "clones": dict.fromkeys(("n2", "n2-norm", "n4"), CLONE),
    "theory": {"flow": {}},
}  # fmt: skip
FIG3 = {
    "evaluation": "bert", "seeds": [1], "generators": ["n2-test"], "test": "own",
    "chains": ["n4"], "pairs": [], "control": "o",
}  # fmt: skip
PART = {
    "source": "potts", "networks": [{"model": "n1", "seeds": [0, 2]}],
    "protocols": [{"model": "n1", "seeds": [2, 3]}], "lines": ["pair"], "truth": "true",
}  # fmt: skip
POTTS = {
    "source": "potts", "optimum": "true",
    "runs": [{"label": "free", "candidates": ["slow", "fast"], "seeds": [0, 1]}],
    "interpolation": [{"a": 0, "candidates": ["a0"], "seeds": [3]}],
}  # fmt: skip
MAPS = [f"potts/{model}/{seed}" for model in ("slow", "fast") for seed in (0, 1)]
REST = [f"potts/{run}" for run in ("a0/3", "true/0")]
CONTACTS = {"source": "family", "model": "map", "seed": 2}


def asked(paper: str, figure: str, block: dict) -> dict[str, list[str]]:
    """What a figure asks for, by kind of file: the fields of the keys."""
    module = papers.figure_module(paper, figure)
    given = module.Inputs.of(module.Block.model_validate(block), CONFIG)
    found: dict[str, list[str]] = {}
    for key in distinct(given):
        fields = [str(part) for name, part in key if name != "targets"]
        for kind in key.KINDS:
            found.setdefault(kind, []).append("/".join(fields))
    return found


@pytest.mark.parametrize(
    ("figure", "block", "expected"),
    [
        # A student comes with its seeds, its generators and all clones.
        (
            "simplicity/fig3", FIG3,
            {"losses": ["bert/1", "n2-test/0"], "runs": ["bert/1", "n2-test/0"],
             "clones": ["n2", "n2-norm", "n4"]},
        ),
        # A staircase comes with each run once.
        (
            "simplicity/fig2", PART,
            {"models": [f"potts/{run}" for run in ("n1/0", "n1/2", "n1/3", "pair/0", "true/0")],
             "displacements": ["potts/n1"]},
        ),
        ("simplicity/gradient_flow", {"theory": "flow"}, {"theory": ["flow"]}),
        # The Potts figures ask for the runs of every candidate, and maps of those of panels a to c.
        (
            "potts/fig2", POTTS,
            {"maps": MAPS, "hamiltonians": ["potts"], "sequences": ["potts"],
             "models": [*MAPS, *REST]},
        ),
        # Without a file of contacts those of a Potts source are what was planted there.
        ("potts/contacts", CONTACTS, {"contacts": ["family/map/2"]}),
        ("potts/contacts", CONTACTS | {"truth": "list.tsv"},
         {"contacts": ["family/map/2"], "known": ["list.tsv"]}),
        ("potts/contacts", CONTACTS | {"source": "spins"},
         {"contacts": ["spins/map/2"], "hamiltonians": ["spins"]}),
    ],
)  # fmt: skip
def test_a_figure_asks_for_what_its_block_names(figure, block, expected):
    found = asked(*figure.split("/"), block)
    assert {kind: found[kind] for kind in expected} == expected
    kinds = {"known", "hamiltonians"} if figure == "potts/contacts" else set()
    assert kinds & set(found) == kinds & set(expected)


@pytest.mark.parametrize(("named", "shown"), [("o", []), ("n2", [["n2", 5]])])
def test_the_page_shows_the_clones_of_the_targets_that_a_block_names(named, shown):
    block = papers.figure_module("simplicity", "fig3").Block.model_validate(
        FIG3 | {"control": named}
    )
    assert block.states(CONFIG) == [["n4", 5], *shown, ["n2-norm", 5]]


def test_claims_about_the_same_runs_are_those_of_one_figure():
    config = load()
    config["figures"] = {"simplicity": {
        name: {k: v for k, v in block.items() if v is not None}
        for name, block in config["figures"]["simplicity"].items() if block
    }}  # fmt: skip
    shared = {}
    for name, block in config["figures"]["simplicity"].items():
        module = papers.figure_module("simplicity", name)
        given = module.Inputs.of(module.Block.model_validate(block), config)
        shared[name] = getattr(given, "claims_reported_by", None)
    assert {name: other for name, other in shared.items() if other} == {"fig1": "fig4"}


# --- Keys and their files -------------------------------------------------------------------------


class Two(inputs.Inputs):
    first: list[Spectrum]
    second: dict[str, Maps]
    third: list[Spectrum]


def test_equal_keys_share_the_file_that_the_job_gives_them_once():
    one, other = (Spectrum(spectrum="s", seed=seed) for seed in (0, 1))
    again = Spectrum(spectrum="s", seed=0)
    given = Two(
        first=[one, other], second={"m": Maps(source="a", model="b", seed=0)}, third=[again]
    )
    assert distinct(given) == [one, other, given.second["m"]]
    with_files(given, {"spectra": ["zero", "one"], "maps": "map"})
    assert [key.file() for key in (*given.first, *given.third)] == ["zero", "one", "zero"]
    assert given.second["m"].file("maps") == "map"
    # Plain values make the same inputs again, without files.
    plain = Two.model_validate(given.model_dump())
    assert plain.model_dump() == given.model_dump()
    with pytest.raises(KeyError, match="spectra"):
        plain.first[0].file()


def test_keys_of_evaluations_know_their_losses_and_their_runs():
    runs = inputs.runs_of(["bert", "n2-test", "bert"], CONFIG, {"bert": [1]})
    assert [(run.evaluation, run.seed) for run in runs] == [("bert", 1), ("n2-test", 0)]
    assert runs[0].KINDS == ("losses", "runs")
    spectra = inputs.spectra_of(
        ["b", "a"], {"spectra": {"a": {"seeds": [2]}, "b": {"seeds": [1, 0]}}}
    )
    assert [(one.spectrum, one.seed) for one in spectra] == [("b", 1), ("b", 0), ("a", 2)]
    assert [one.clone for one in inputs.clones_of(runs, "n4")] == ["n2", "n2-norm", "n4"]
