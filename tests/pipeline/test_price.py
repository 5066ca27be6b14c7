"""Operations that are counted, what they cost, and the table."""

import csv
from types import SimpleNamespace

import pytest
from configs import load
from snakemake.utils import update_config

from benchmarks import gpu
from manybody.data.kinds import KINDS
from manybody.io.atomic import read_json
from manybody.models import linear
from manybody.pipeline import price, probe
from manybody.pipeline.price import PEAK, SHARES, Asked
from manybody.pipeline.probe import Prices, Probe, up_to

BERT = dict(
    architecture="bert", vocabulary=30, length=8, layers=3, heads=2, width=16, mlp=32
)  # fmt: skip
RECIPE = dict(
    objective="masked", batch=16, masks="all", precision="bfloat16", clip=1.0, together=False,
    learning_rate=0.0, warmup=0, schedule="constant", steps=1,
    optimizer=dict(name="sgd", momentum=0.0, weight_decay=0.0),
)  # fmt: skip
START = 2.5
SIZES = {"text": {"vocabulary": 20, "length": 8}, "spins": {"vocabulary": 20, "length": 20}}


@pytest.mark.parametrize("count", [1, 2, 3, 50, 10**6])
def test_a_fixed_part_and_one_in_proportion_are_told_apart(count):
    """A cost of 5 + 3 n, of which at most two sizes are looked at."""
    asked = []

    def cost(size):
        asked.append(size)
        return 5.0 + 3.0 * size

    assert up_to(count, lambda size: size, cost) == 5 + 3 * count
    assert max(asked) <= 2


def test_small_jobs_are_timed_whole(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(probe.time, "process_time", lambda: 1e-3 * next(clock))
    sizes = []
    up_to(7, lambda size: lambda: sizes.append(size))
    assert set(sizes) == {1, 7}


@pytest.mark.parametrize("by_onednn", [bool(linear.PRODUCTS), False])
def test_operations_of_a_bert_are_those_of_the_formula(monkeypatch, by_onednn):
    """The formula of benchmarks.gpu, counted by hand: (n - 1) layers of all rows and one of the
    masked rows; a training step takes three times as many as the logits."""
    monkeypatch.setattr(linear, "SMALL", 1)
    monkeypatch.setattr(linear, "by_onednn", by_onednn)
    monkeypatch.setattr(gpu, "BERT", BERT)
    monkeypatch.setattr(gpu, "LENGTH", BERT["length"])
    monkeypatch.setattr(gpu, "VOCABULARY", BERT["vocabulary"])
    probed, length = Probe(BERT, gpu=True), BERT["length"]
    assert probed.step(RECIPE) == 3 * gpu.operations(2, 2 * length)
    assert probed.tested("all") == gpu.operations(1000, 1000 * length) / 1000
    clone = dict(
        sampler=None, energy="raw", chains=6, gauge="none", precision="float32",
        order="left-to-right",
    )  # fmt: skip
    # the other positions of each chain, and the logits that a proposal is drawn from
    head = 2 * 6 * BERT["width"] * BERT["vocabulary"]
    assert probed.sampled(clone) == gpu.operations(6, 6 * (length - 1), head=False) + head


def test_chains_of_factored_attention_cost_their_products_in_double_precision():
    sizes = dict(layers=4, rank=4, length=6, vocabulary=400)
    model = dict(architecture="factored", variant="exact", bias=True, **sizes)
    clone = dict(sampler=None, energy="raw", chains=6, gauge="none", precision="float32")
    # Of the first square 2 L d^3 + 2 L^2 d^2 for the one layer above; of both L^2 d^2 + L d^3.
    products = 2 * 6 * 4**3 + 2 * 6**2 * 4**2 + 2 * (6**2 * 4**2 + 6 * 4**3)
    assert Probe(model, gpu=True).sampled(clone) == 2 * 6 * products


@pytest.mark.parametrize(("energy", "share"), [("raw", 1 - probe.SAME), ("norm", 1.0)])
def test_proposals_that_are_the_token_itself_cost_nothing(monkeypatch, energy, share):
    monkeypatch.setattr(Probe, "up_to", lambda *_: 24.0)
    clone = dict(sampler=None, energy=energy, chains=6, gauge="none", precision="float32")
    assert Probe(BERT).sampled(clone) == 24 * share
    assert Probe(BERT).sampled(clone | {"sampler": "heat-bath"}) == 24 / BERT["length"]


def test_draws_from_all_states_cost_the_search_for_their_distribution():
    sizes = dict(architecture="bert", vocabulary=2, layers=1, heads=1, width=8, mlp=8)
    clone = dict(sampler="enumerated", energy="norm", chains=6, gauge="none", precision="float32")
    few, many = (length * Probe({**sizes, "length": length}).sampled(clone) for length in (3, 8))
    assert 0 < 2 * few < many < 60


def test_gpu_time_is_the_operations_at_the_share_of_the_peak():
    def cost(rule, wildcards, gpu):
        return 3600 * PEAK * SHARES[rule] if gpu else 600.0

    known = {"models": {"ranked": {"rank": None}}, "clones": {"one": {"model": "ranked"}}}
    counted = SimpleNamespace(config=known, of=cost, start=lambda *_: START)

    def asked(rule, gpus):
        return Asked(rule, {}, 2, 3000, gpus, set())

    assert price.price(asked("train_model", 1), counted).seconds == START + 3600
    assert price.price(asked("train_model", 2), counted).seconds == START + 1800
    ranked = asked("train_model", 1)._replace(wildcards={"model": "ranked"})
    assert price.price(ranked, counted).seconds == pytest.approx(START + 3600 * 0.38 / 0.15)
    clone = asked("sample_clones", 1)._replace(wildcards={"clone": "one"})
    assert price.price(clone, counted).seconds == pytest.approx(START + 3600 * 0.32 / 0.045)
    # without a GPU, and what does not use the one it is given: two threads share the work
    assert price.price(asked("train_model", 0), counted).seconds == START + 300
    assert price.price(asked("describe_clones", 1), counted).seconds == START + 300


def config(**overlay):
    made = load("tiny.yaml")
    update_config(made, overlay)
    return made


@pytest.fixture
def unit(monkeypatch):
    """Each call that is timed takes a quarter of a second."""
    monkeypatch.setattr(probe, "up_to", lambda count, ready, *_, **__: (ready(1)() and 0) or 0.25)


def of(rule, config, **wildcards):
    modules = {name: KINDS[one["kind"]].module for name, one in config["sources"].items()}
    return Prices(config, SIZES, modules).of(rule, wildcards)


def test_costs_are_in_proportion_to_the_counted_work(unit):
    tiny = config()
    asked = dict(source="text", model="tiny", seed="0")
    # 80 steps; 8 checkpoints (0, 1, 9, 20, 40, 80 ...) of 100 validation sequences, a probe's 1000
    checkpoints = len(probe.kept_steps(tiny["models"]["tiny"]["training"]))
    expected = 80 * 0.25 + checkpoints * 100 * 0.25 / 1000
    assert of("train_model", tiny, **asked) == pytest.approx(expected)
    assert of("train_model_on_cpu", tiny, **asked) == pytest.approx(expected)
    # 6 sweeps of 8 steps
    assert of("sample_clones", tiny, source="text", clone="tiny") == pytest.approx(
        6 * 8 * 0.25 * (1 - probe.SAME)
    )
    # 50 test sequences and 16 chains
    tested = of("evaluate_model", tiny, evaluation="tiny", seed="0")
    assert tested == pytest.approx(checkpoints * 66 * 0.25 / 1000)
    last = config(evaluations={"tiny": {"steps": "last"}})
    assert of("evaluate_model", last, evaluation="tiny", seed="0") == pytest.approx(
        66 * 0.25 / 1000
    )
    assert of("make_figure", tiny, paper="potts", figure="fig2") == 0


def test_runs_are_solved_by_equations_in_double_precision(unit):
    """Those of models that have an equation, on the validation sequences of their source."""
    made = config()
    made["models"]["solved"] = made["models"]["tiny"] | {"layers": 1, "bias": False}
    runs = [("spins", "solved", 0), ("spins", "solved", 1), ("spins", "tiny", 0)]
    prices = Prices(made, SIZES, {}, lambda *figure: {("potts", "fig2"): runs}[figure])
    asked = {"paper": "potts", "figure": "fig2"}
    assert prices.of("evaluate_equations", asked) == 200 * 0.25 / 1000


def test_a_large_fixed_part_is_told_from_many_units(monkeypatch):
    """Four units of a hundredth beside a fixed second would be lost in the clock's noise."""
    sizes = []

    def cost(call):
        sizes.append(call())
        # the first of each two measurements of a size is slow
        return (4 if len(sizes) % 2 else 1) * (1.0 + 0.01 * sizes[-1])

    monkeypatch.setattr(probe, "seconds", cost)
    assert up_to(10**4, lambda size: lambda: size, cost) == pytest.approx(101)
    assert sizes == [1, 1, 4, 4, 16, 16, 64, 64, 256, 256]


SLOW = """import time
end = time.process_time() + 1
while time.process_time() < end:
    pass
thing = 1
"""


def test_a_start_is_that_of_what_the_script_imports(tmp_path, monkeypatch):
    (tmp_path / "short.py").write_text("import json\nraise SystemExit('not run')\n")
    (tmp_path / "long.py").write_text("if True:\n    from slow import thing\n")
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.setattr(probe, "SCRIPTS", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    prices = Prices({}, {}, {})
    short, long = prices.start("short"), prices.start("long_on_cpu")
    assert 0 < short < long - 0.5
    assert Prices({}, {}, {}).start("short", "slow") > short + 0.5
    assert prices.start("short", "slow") == short  # of the first job


def spectrum_of(config, **changes):
    entry = {
        "source": "text", "model": "tiny", "seeds": [0], "steps": 3, "kind": "draws",
        "sequences": 32, "orders": 2, "law": "text", "forwards": 4480, "anchored": None,
    }  # fmt: skip
    return {**config, "spectra": {"tiny": {**entry, **changes}}}


def test_a_spectrum_costs_its_draws_at_each_checkpoint_and_its_anchored_losses_once(monkeypatch):
    asked = []

    def up_to(self, count, ready):
        asked.append(count)
        ready(1)()
        return 0.25

    monkeypatch.setattr(Probe, "up_to", up_to)
    given = dict(spectrum="tiny", seed="0")
    # a chunk of 64 draws of orders 1 and 2 takes 64 (3 + 4) = 448 forwards
    assert of("measure_spectrum", spectrum_of(config()), **given) == 3 * 0.25
    assert asked == [10]
    anchored = spectrum_of(config(), anchored={"size": 2, "targets": 7})
    assert of("measure_spectrum", anchored, **given) == 3 * 0.25 + 0.25
    assert sorted(asked) == [7, 10, 10]
    assert (
        of("measure_spectrum", spectrum_of(config(), kind="enumeration", steps=[0, 2]), **given)
        == 2 * 0.25
    )
    assert asked[3:] == [16]  # half of the sequences


def test_a_spectrum_on_a_gpu_costs_its_passes(monkeypatch):
    monkeypatch.setattr(Probe, "passes", lambda self: 2.0)
    anchored = spectrum_of(config(), anchored={"size": 2, "targets": 7})
    prices, given = Prices(anchored, SIZES, {}), dict(spectrum="tiny", seed="0")
    assert prices.of("measure_spectrum", given, gpu=True) == 2.0 * (3 * 4480 + 7 * 2**2)


def test_clocks_and_adopted_weights_cost_the_test_losses_of_their_sequences(monkeypatch):
    monkeypatch.setattr(Probe, "tested", lambda self, share: {"all": 0.5}[share])
    made, asked = config(), dict(source="text", model="tiny", seed="0")
    checkpoints = len(probe.kept_steps(made["models"]["tiny"]["training"]))
    made["sources"]["text"]["sequences"] = {"test": 50}
    assert of("measure_clock", made, **asked) == checkpoints * 50 * 0.5
    made["sources"]["text"]["sequences"] = {"test": 100}
    monkeypatch.setitem(SIZES, "text", {"vocabulary": 8, "length": 2})
    assert of("measure_clock", made, **asked) == checkpoints * 64 * 0.5
    made["sources"]["text"]["sequences"] = {"train": 30, "validation": 12, "test": 100}
    assert of("adopt_weights", made, **asked) == 42 * 0.5


@pytest.mark.parametrize(
    ("entry", "counted"),
    [
        ({"realisations": 30}, 30),
        ({"runs": 8, "epochs": 130}, 1040),
        ({"samples": 5}, 1),
    ],
)
def test_a_theory_is_counted_in_realisations_or_epochs(monkeypatch, entry, counted):
    seen = []
    monkeypatch.setattr(
        probe, "up_to", lambda count, ready: seen.append(count) or ready(2)() or 3.0
    )
    module = SimpleNamespace(compute=lambda given: seen.append(given))
    monkeypatch.setattr(probe, "import_module", lambda name: {"theirs": module}[name])
    prices = Prices({"theory": {"t": {"threads": 4, **entry}}}, {}, {"theory/t": "theirs"})
    assert prices.of("compute_theory", {"theory": "t"}) == 3.0
    assert seen[0] == counted
    key = next((key for key in ("epochs", "realisations") if key in entry), None)
    alone = {"runs": 1} if "runs" in entry else {}
    assert seen[1] == {**entry, **alone, "threads": 4} | {key or "realisations": 2}


@pytest.mark.parametrize("key", ["scrambles", "iterations"])
def test_a_theory_that_ends_when_it_converges_is_not_priced(key):
    with pytest.raises(probe.Unsized, match="until it converges"):
        Prices({"theory": {"t": {key: 3}}}, {}, {}).of("compute_theory", {"theory": "t"})


def test_what_only_a_file_knows_is_said():
    with pytest.raises(probe.Unsized, match="in a file"):
        of("encode_sequences", config(), source="text", split="train")
    with pytest.raises(probe.Unsized, match=r"\|V\| and L of text"):
        Prices(config(), {"text": {}}, {}).of("sample_clones", dict(source="text", clone="tiny"))


def test_the_table_adds_up_and_a_run_reads_the_seconds(tmp_path):
    jobs = {
        "train_model/a": Asked("train_model", {}, 1, 3000, 1, set()),
        "train_model/b": Asked("train_model", {}, 1, 4000, 0, set()),
        "plot/c": Asked("plot", {}, 2, 100, 0, {"train_model/a", "train_model/b"}, local=True),
        "read/d": Asked("collect_corpus", {}, 1, 10, 0, set()),
    }

    def cost(rule, wildcards, gpu):
        if rule == "collect_corpus":
            raise probe.Unsized("sizes in a file")
        return (3600 - START) * (PEAK * SHARES[rule] if gpu else {"plot": 2}.get(rule, 1))

    known = SimpleNamespace(config={"models": {}, "clones": {}}, of=cost, start=lambda *_: START)

    said = price.write(tmp_path, jobs, known, {"nodes": [1, 2], "cores": 2, "gpus": 1}, 30.0)
    with (tmp_path / "price.csv").open() as opened:
        rows = {row["stage"]: row for row in csv.DictReader(opened)}
    trained = rows["train_model"]
    assert (trained["jobs"], float(trained["core_hours"])) == ("2", 2)
    assert (float(trained["gpu_hours"]), trained["memory_mb"]) == (1, "4000")
    assert float(rows["plot"]["core_hours"]) == 2
    assert rows["collect_corpus"]["not_priced"] == "sizes in a file"
    assert (rows["all"]["jobs"], float(rows["all"]["gpu_hours"])) == ("4", 1)
    assert float(rows["all"]["core_hours"]) == pytest.approx(4 + START / 3600, rel=1e-3)
    assert read_json(tmp_path / "price.json") == {job: 3600 for job in list(jobs)[:3]}
    assert "| train_model | 2 | 2 | 4000 | 1 | 1 |  |" in said
    # The trainings beside each other and the look after them, at 3680 s; then the plot. Where the
    # third job starts before one of them, on one node in 13 of 20 orders and on two in all, it is
    # seen to end at 50 s, which moves the looks after it, to 3730 s.
    assert "| 1 | 2.03 | 2.01 |\n| 2 | 2.04 | 2.01 |" in said


def test_seconds_by_stage_of_what_is_trained_here(unit, monkeypatch):
    mine = config(
        models={"theirs": {"architecture": "pretrained"}},
        evaluations={"theirs": {**load("tiny.yaml")["evaluations"]["tiny"], "model": "theirs"}},
    )
    monkeypatch.setattr(Prices, "start", lambda *_: START)
    found = price.by_stage(mine, SIZES, [("tiny", 0), ("tiny", 1), ("theirs", 0)], ["tiny"])
    counted = {stage: len(jobs) for stage, jobs in found.items()}
    assert counted == {"train_model": 2, "sample_clones": 1, "evaluate_model": 2}
    assert all(seconds > START for jobs in found.values() for seconds in jobs)
