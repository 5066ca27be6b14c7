"""The shipped configs pass; each kind of mistake is answered with its path and the way out."""

import copy
import json
from functools import reduce
from operator import getitem

import pytest
import yaml
from configs import CONFIG, load, refusal
from snakemake.utils import update_config

from manybody.pipeline.check import NAMED, check, take_away
from schemas import document


@pytest.fixture
def config():
    return load()


def put(config, path, value):
    *parents, last = path.split(".")
    for key in parents:
        config = config[key]
    config[last] = value


@pytest.mark.parametrize(
    ("overlays", "figures"),
    [
        ([], {"simplicity", "potts", "multi-index"}),
        (["seeds.yaml"], {"simplicity", "potts", "multi-index"}),
        (["smoke.yaml"], {"simplicity", "potts", "multi-index"}),
        (["paper.yaml"], {"simplicity", "potts", "multi-index"}),
        (["truths.yaml"], None),
        (["order.yaml"], {"order"}),
        (["order.yaml", "bounds.yaml"], {"order"}),
        (["heads.yaml"], None),
        (["lab.yaml"], {"fig1", "fig3", "fig4", "fig4_paper", "fig5"}),
        (["lab.yaml", "lab-wikitext.yaml"], {"fig1"}),
        (["own-text.yaml", "quick.yaml"], {"fig1", "fig3", "fig4", "fig5", "table1"}),
        (
            ["own-text.yaml", "own-spectrum.yaml", "quick.yaml"],
            {"fig1", "fig3", "fig4", "fig5", "table1", "spectrum"},
        ),
    ],
)
def test_shipped_configs_pass_and_draw_their_figures(overlays, figures):
    config = load(*overlays)
    take_away(config)
    check(config)
    drawn = config["figures"]
    assert figures in (None, drawn.keys(), drawn["simplicity"].keys())


@pytest.mark.parametrize(
    "overlay", ["smoke.yaml", "paper.yaml", "truths.yaml", "order.yaml", "heads.yaml"]
)
def test_scales_never_mix(overlay):
    assert load(overlay)["results"] != load()["results"]


def test_a_quick_look_scales_all_that_an_own_text_runs():
    slow, quick = load("own-text.yaml"), load("own-text.yaml", "quick.yaml")
    trained = {evaluation["model"] for evaluation in slow["evaluations"].values()} - {"n2-wide"}
    for name in trained:
        before, after = (config["models"][name]["training"] for config in (slow, quick))
        assert after["steps"] < before["steps"] / 2
        kept = [sum(len(x) if isinstance(x, list) else x for x in one["checkpoints"].values())
                for one in (before, after)]  # fmt: skip
        assert kept[1] < kept[0]
    for name in ("n2", "n4", "bert"):
        assert quick["clones"][name]["chains"] < slow["clones"][name]["chains"]
    for name in ("own-bert", "own-gpt"):
        assert len(quick["evaluations"][name]["seeds"]) < len(slow["evaluations"][name]["seeds"])


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("models.n2.rnk", 3, ["models.n2.rnk", "did you mean rank"]),
        ("models.n2.training.stepps", 3, ["models.n2.training.stepps", "did you mean steps"]),
        ("sourcs", {}, ["sourcs", "did you mean sources"]),
        ("models.n2.layers", "two", ["models.n2.layers", "'two'", "integer"]),
        ("results", "results/mine/", ["'results/mine/'; expected a string of letters, digits"]),
        ("results", "results//mine", ["results", "'results//mine'"]),
        ("models.n2.training.learning_rate", -1, ["models.n2.training.learning_rate", "-1"]),
        ("models.bert.heads", 5, ["models.bert.heads", "5", "width 64"]),
        ("models.n2.rank", 401, ["models.n2.rank", "401", "rank <= 400"]),
        ("clones.n2.model", "n3", ["clones.n2.model", "models.n3", "did you mean n"]),
        ("clones.n2.model", "gpt", ["clones.n2.model", "gpt", "causal"]),
        ("clones.n2.step", 99999, ["clones.n2.step", "99999", "2500"]),
        (
            "clones.fit",
            {
                "source": "many-body",
                "model": "many-body-2",
                "seed": 0,
                "step": 5,
                "energy": "raw",
                "gauge": "none",
                "chain_init": "test",
                "chains": 16,
                "sweeps": [1],
                "order": "left-to-right",
                "chain_seed": 1,
                "precision": "float32",
                "threads": 1,
            },
            ["clones.fit.step: found 5", "keeps its end only; take last"],
        ),
        ("sources.docs.blocks", {"test": 50}, ["clones.n2.chains", "160", "the 50 of source docs"]),
        ("clones.n2.precision", "float16", ["clones.n2.precision", "factored", "float32"]),
        ("clones.n2.energy", "rww", ["clones.n2.energy", "'rww'", "raw"]),
        ("models.n2.training.checkpoints.listed", [9999], ["listed", "9999", "2500"]),
        ("models.n2.training.warmup", 2500, ["warmup", "2500"]),
        ("models.n2.training.batch", 1, ["models.n2.training.batch", "1 copies"]),
        ("models.gpt.training.objective", "masked", ["models.gpt.training.objective", "next"]),
        ("models.n2.training.optimizer", {"name": "lion"}, ["models.n2.training.optimizer"]),
        ("sources.docs.corpus", "pydoc", ["sources.docs.corpus", "did you mean pydocs"]),
        (
            "corpora.mine",
            {"kind": "file", "files": ["letters.txt"]},
            ["corpora.mine: found files of your own that no source is made of", "corpus: mine}"],
        ),
        (
            "corpora.twice",
            {
                "kind": "wikitext103",
                "split": "published",
                "revision": "0" * 40,
                "files": {"train": ["a"], "validation": ["b"], "test": ["./a"]},
            },
            ["corpora.twice.files: found ", "/a again; expected each file once"],
        ),
        ("corpora.pydocs.seed", 10**38, ["corpora.pydocs.seed", "below 1e+38"]),
        ("sources.docs.length", 1, ["sources.docs.length", "1"]),
        ("sources.docs.vocabulary", 100, ["sources.docs.vocabulary", "100", "256"]),
        ("sources.many-body.order", 5, ["sources.many-body.order", "5", "from 2 to 4"]),
        ("sources.many-body.length", 3, ["sources.many-body.length", "3", "at least 4"]),
        ("sources.many-body.vocabulary", 1, ["sources.many-body.vocabulary", "1"]),
        ("sources.many-body.couplings.vectors", 0, ["sources.many-body.couplings.vectors", "0"]),
        ("sources.many-body.couplings.probability", 1, ["couplings.probability", "1"]),
        ("sources.many-body.logit_scale", 0, ["sources.many-body.logit_scale", "0"]),
        ("models.many-body-n3.init_scale", [0.2], ["models.many-body-n3.init_scale", "a number"]),
        ("models.many-body-n3.rank", 3, ["models.many-body-n3.init_scale", "rank 3"]),
        ("models.many-body-n3.training.batch", 2561, ["many-body-n3.training.batch", "take 2560"]),
        ("models.many-body-true.order", 3, ["many-body-true.order", "3", "of order 4"]),
        ("figures.simplicity.fig2.source", "docs", ["fig2.source", "docs", "many-body"]),
        ("figures.simplicity.fig2.truth", "many-body-4", ["fig2.truth", "parameters: source"]),
        ("figures.simplicity.fig2.lines", ["n2"], ["fig2.lines", "n2", "energy"]),
        ("sources.potts.temperature", {"beta": -1}, ["sources.potts.temperature", "-1"]),
        ("sources.potts.temperature", {"hamming": None}, ["temperature: found neither hamming"]),
        (
            "sources.potts.temperature.beta",
            1.0,
            ["found hamming and beta; expected one", "null for", "{hamming: null, beta: 1.0}"],
        ),
        ("sources.potts.couplings", "contacts", ["sources.potts.couplings", "'contacts'"]),
        ("models.potts-free.training.subset", 200000, ["subset", "200000", "120000"]),
        (
            "models.potts-free.training.validation",
            10**6,
            ["training.validation: found 1000000; expected at most", "validation split", "lower"],
        ),
        (
            "models.potts-map.training.sequence_weights",
            "identity",
            ["weights", "potts source", "alignment"],
        ),
        ("models.potts-map.heads", "full", ["training.optimizer.couplings", "gremlin or plmdca"]),
        ("models.family-map.heads", 8, ["couplings: found gremlin", "or take heads full"]),
        ("models.many-body-n3-adamw.heads", "full", ["couplings: missing", "gremlin or plmdca"]),
        ("models.family-map.layers", 2, ["layers: found 2 with heads full", "expected 1"]),
        (
            "models.family-map.training.optimizer.couplings",
            None,
            ["ridge: missing with couplings None", "expected a number"],
        ),
        (
            "models.potts-map.training.optimizer.heads",
            2,
            ["heads: found 2 with couplings None, which they are of", "leave heads out"],
        ),
        ("curves.recovery.source", "docs", ["curves.recovery.source", "docs", "potts"]),
        ("theory.replica.gamma", 2, ["theory.replica.gamma", "2"]),
        ("theory.thresholds.tolerance_1", "7e-4", ["YAML reads as text", "tolerance_1: 0.0007"]),
        (
            "theory.thresholds.tolerance_1",
            "7e-7",
            ["'7e-7'", "write for example tolerance_1: 7.0e-07"],
        ),
        ("corpora.pydocs.split", 3, ['split: {"train": 0.8, "validation": 0.1, "test": 0.1}']),
        ("theory.thresholds.points", "1e3", ["'1e3'", "write for example points: 1000"]),
        ("theory.state-evolution.skip", 0, ["theory.state-evolution.skip: found 0", "above 0"]),
        (
            "theory.layer-2-held.skip",
            0,
            ["layer-2-held.skip: found 0", "for example skip: 1"],
        ),
        ("theory.three-layers.skips", [0], ["three-layers.skips[0]: found 0", "above 0"]),
        ("theory.gamp.activation", "relu", ["gamp.activation", "'relu'", "softmax, linear"]),
        ("evaluations.bert.targets.wrong", {"clone": "n2", "sweep": 15}, ["wrong.sweep", "15"]),
        *[
            ("figures.simplicity.fig3.twins", [dict(noise="noise", **twins)], [said])
            for twins, said in (
                ({"evaluation": "n9", "text": "text"}, "twins[0].evaluation"),
                ({"evaluation": "n4", "text": "test"}, "found test"),
                ({"evaluation": "n4", "text": "own"}, "different sweeps"),
            )
        ],
        ("figures.potts.fig2.optimum", "potts-free", ["fig2.optimum", "parameters: source"]),
        ("figures.potts.fig3.curve", "separable", ["fig3.curve", "did you mean separability"]),
        ("figures.potts.contacts.model", "potts-maps", ["contacts.model", "did you mean potts-m"]),
        ("figures.potts.contacts.chain", "B", ["contacts.chain", "leave `chain` out"]),
        ("figures.simplicity.table1.sweep", 3, ["table1.sweep: found 3", "of clones.n2: 10, 20"]),
        (
            "figures.simplicity.fig3.seeds",
            [9],
            ["fig3.seeds[0]: found 9", "evaluations.bert: 0, 1"],
        ),
        (
            "figures.potts.contacts.truth",
            "a.cif",
            ["contacts.truth", "a structure", "potts, of kind"],
        ),
        (
            "figures.potts.contacts.truth",
            {"hamiltonian": "potts"},
            ["contacts.truth", "a structure"],
        ),
    ],
)
def test_a_mistake_is_named_with_its_path(config, path, value, expected):
    put(config, path, value)
    said = refusal(config)
    assert [part for part in expected if part not in said] == []


def test_every_key_is_described():
    """A schema without descriptions is no reference manual."""
    schema = json.loads((CONFIG.parent / document.SCHEMA).read_text(encoding="utf-8"))
    blocks = {"Config": schema, **schema["$defs"]}
    assert len(blocks) > 60
    found = [
        f"{block}.{key}"
        for block, about in blocks.items()
        for key, entry in about["properties"].items()
        # A block has a description of its own, the kind of a block says what it is.
        if not any(
            {"description", "$ref", "const", "enum"} & set(value)
            for value in (entry, *entry.get("anyOf", []))
        )
    ]
    found += [name for name, about in blocks.items() if not about.get("description")]
    assert not found, f"no description: {found}"


def test_the_schema_and_the_page_are_those_of_the_typed_blocks():
    for path, text in document.files(CONFIG.parent).items():
        written = (CONFIG.parent / path).read_text(encoding="utf-8")
        assert written == text, f"{path}: run `make config`"


def test_what_the_schema_takes_is_what_the_check_takes():
    """The schema for editors takes the shipped configs, nulls that take away included."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(document.schema())
    overlays = ("smoke", "paper", "lab", "truths", "order")
    for overlay in ([], *([f"{name}.yaml"] for name in overlays)):
        validator.validate(load(*overlay))
    config = load()
    for block in NAMED:
        config[block]["gone"] = None
    validator.validate(config)
    config["models"]["n2"]["layers"] = "two"
    assert not validator.is_valid(config)


# For each block an entry of the default, and who refers to it.
REFERRED = {
    "corpora": ("pydocs", "sources.docs.corpus"),
    "sources": ("docs", "clones.n2.source"),
    "models": ("n2", "clones.n4-early.step.loss_of.model"),
    "clones": ("n2", "evaluations.bert.targets.order-3.clone"),
    "evaluations": ("gpt", "figures.simplicity.fig5.evaluation"),
    "spectra": ("gpt", "figures.simplicity.spectrum.students[1]"),
    "theory": ("sgd", "figures.multi-index.fig2.theory.sgd"),
    "curves": ("recovery", "figures.potts.recovery.curve"),
}


@pytest.mark.parametrize("block", REFERRED)
def test_null_takes_an_entry_away(config, block):
    name, who = REFERRED[block]
    config[block]["spare"] = copy.deepcopy(config[block][name])
    without = load()
    assert take_away(config) == set()
    config[block]["spare"] = None
    assert take_away(config) == {(block, "spare")}
    assert config == without
    check(config)
    config[block][name] = None
    said = f"{who}: found {name}, but there is no {block}.{name}, which null takes away; expected"
    assert said in refusal(config, take_away(config))


def test_few_heads_of_a_family_are_those_of_its_fit(config):
    shared = config["models"]["family-map"]["training"]
    config["models"]["few"] = config["models"]["family-map"] | {"heads": 8}
    take_away(config)
    check(config)
    assert config["models"]["few"]["heads"] == config["models"]["family-map"]["heads"] == "full"
    assert config["models"]["few"]["training"]["optimizer"]["heads"] == 8
    assert "heads" not in shared["optimizer"]
    for changes in ({"layers": 2}, {"architecture": "bert", "layers": 1}, {"architecture": "none"}):
        config["models"]["few"] = config["models"]["family-map"] | {"heads": 4} | changes
        take_away(config)
        assert config["models"]["few"]["heads"] == 4


def test_inside_an_entry_null_is_a_value(config):
    assert config["models"]["potts-free"]["rank"] is None
    put(config, "models.n2.rank", None)
    put(config, "sources.potts.temperature", {"hamming": None, "beta": 1.0})
    take_away(config)
    assert config["models"]["n2"]["rank"] is None
    check(config)


FAMILY = """\
{sources: {docs: {kind: alignment, file: a.fasta, format: fasta, alphabet: rna, identity: 0.8,
 split: {train: 0.8, validation: 0.1, test: 0.1}, seed: 0, %s}}}
"""
TEXT = "corpus: null, vocabulary: null, length: null, end_of_document: null"


@pytest.mark.parametrize(
    ("overlay", "path"),
    [
        ("corpora: {pydocs: {deduplicate: null}}", "corpora.pydocs.deduplicate"),
        ("evaluations: {gpt: {targets: {spare: null}}}", "evaluations.gpt.targets.spare"),
        ("sources: {docs: {vocabulary: null, tokenizer: model}}", "sources.docs.vocabulary"),
        (
            "sources: {potts: {colours: {file: u.safetensors, gaussian: null}}}",
            "sources.potts.colours.gaussian",
        ),
        (FAMILY % TEXT, "sources.docs.corpus"),
        ("figures: {potts: null}", "figures.potts"),
        ("figures: {potts: {fig3: null}}", "figures.potts.fig3"),
        ("figures: {simplicity: {fig4: {norm: null}}}", "figures.simplicity.fig4.norm"),
    ],
)
def test_null_takes_back_what_may_be_left_out_or_is_of_another_kind(config, overlay, path):
    update_config(config, yaml.safe_load(overlay))
    *parents, gone = path.split(".")
    node = reduce(getitem, parents, config)
    assert node[gone] is None
    check(config, take_away(config))
    assert gone not in node


@pytest.mark.parametrize(
    ("overlay", "said"),
    [
        ("models: {n2: {layers: null}}", "models.n2.layers: found None; expected an integer"),
        ("models: {n2: {llayers: null}}", "models.n2.llayers: this key is not known"),
        (
            "evaluations: {bert: {targets: {order-3: null}}}",
            "found order-3; expected one of the targets of evaluations.bert",
        ),
        (
            FAMILY % "corpus: docs",
            "sources.docs.vocabulary: this key is not known; expected one of alphabet, "
            "alphabet_confirmed, file, format, identity, kind, reference, seed, split; leave it "
            "out (null takes back what another file gives)",
        ),
        (
            "sources: {docs: {tokenizer: model}}",
            "found both of vocabulary and tokenizer; expected one of them: the size of a tokenizer "
            "to be trained, or one that comes with a model; leave one out (null takes back what "
            "another file gives)",
        ),
    ],
)
def test_null_takes_nothing_else_back_and_messages_name_it(config, overlay, said):
    update_config(config, yaml.safe_load(overlay))
    assert said in refusal(config, take_away(config))
