"""Figures from small synthetic tables: what is drawn, what is said, and that bytes repeat."""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import jinja2
import numpy as np
import pandas as pd
import pytest
import snakemake.utils
import yaml
from docutils.core import publish_parts
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from manybody.claims import labels
from manybody.claims.simplicity import comparison
from manybody.config.inputs import needs
from manybody.files import sequences, tables
from manybody.files.manifest import write_manifest
from manybody.plotting import style
from manybody.plotting.simplicity import fig3, fig4_paper, generators, learning, passages

STEPS = [0, 1, 3, 10, 30, 100, 150, 200, 300, 400, 600, 800, 1000, 1400, 1800, 2200, 2600, 3000]
SEQUENCES, LENGTH = 40, 16


def factored(layers, rank=32, length=LENGTH, variant="exact"):
    sizes = dict(layers=layers, rank=rank, bias=True, variant=variant)
    return dict(architecture="factored", vocabulary=400, length=length, **sizes)


BERT = dict(
    architecture="bert", vocabulary=400, length=LENGTH, layers=2, heads=4, width=64, mlp=128
)


def clone(description, name, sweep=20, energy="raw", start="test", step=2500, last=True):
    generator = dict(model=name, seed=0, step=step, last=last, description=description)
    return dict(
        original=False,
        clone=name,
        sweep=sweep,
        length=description["length"],
        generator=generator,
        energy=energy,
        start=start,
    )


TARGETS = {
    "n2": clone(factored(2), "n2"),
    "n4": clone(factored(4), "n4"),
    "bert": clone(BERT, "bert"),
    "n4-70": clone(factored(4), "n4", 70),
    "bert-70": clone(BERT, "bert", 70),
    "n4-early": clone(factored(4), "n4-early", step=700, last=False),
    "n2-wide": clone(factored(2, 160), "n2-wide"),
    "n2-norm": clone(factored(2), "n2-norm", energy="norm"),
    "n4-norm": clone(factored(4), "n4-norm", energy="norm"),
    "bert-norm": clone(BERT, "bert-norm", energy="norm"),
    "n4-unigram": clone(factored(4), "n4-unigram", 70, start="unigram"),
    "original": {"original": True},
}
# Plateau's loss, last loss, step at which the fall is halfway, rise after the minimum.
SHAPES = {
    "n2": (3.3, 230, 0.6),
    "n4": (1.9, 300, 0.0),
    "bert": (1.0, 420, 0.0),
    "n4-early": (2.2, 260, 0.1),
    "n2-wide": (1.2, 400, 0.0),
    "original": (1.8, 520, 0.0),
}
BLOCK = dict(
    evaluation="bert",
    ladder=["n2", "n4", "bert"],
    control="original",
    late_steps=[600, 1000, 3000],
    generators=["n2-test", "n4-test", "bert-test"],
    test="test",
    early_stopped="n4-early",
    wide="n2-wide",
    norm=["n2-norm", "n4-norm", "bert-norm"],
    starts=["n4-70", "n4-unigram"],
)
STUDENT = dict(description=BERT, source="docs", seed=0, steps_per_epoch=200.0)


def curve(target, steps=STEPS):
    final, middle, rise = SHAPES.get(target) or SHAPES[target.split("-")[0]]
    steps = np.asarray(steps, float)
    plateau = 6.1 - 1.9 * (1 - np.exp(-steps / 30))
    fall = 1 / (1 + (middle / np.maximum(steps, 1e-9)) ** 3)
    return plateau + (final - 4.2) * fall + rise * np.log1p(steps / 600) * fall


@cache
def losses(seeds=(0, 1, 2), steps=tuple(STEPS), targets=tuple(TARGETS), predictions=LENGTH):
    frames = []
    for seed in seeds:
        # The difficulty of a sequence is its own, whatever the checkpoint.
        difficulty = np.random.default_rng(1).normal(0, 0.15, SEQUENCES)
        noise = np.random.default_rng(seed)
        for target in targets:
            for step, mean in zip(steps, curve(target, steps), strict=True):
                loss = mean + difficulty + noise.normal(0, 0.02) + noise.normal(0, 0.02, SEQUENCES)
                frames.append(
                    pd.DataFrame(
                        {
                            "target": target,
                            "step": step,
                            "sequence": np.arange(SEQUENCES),
                            "loss_sum": loss * predictions,
                            "correct": np.rint(predictions * np.clip(0.75 - 0.11 * loss, 0, 1)),
                            "predictions": predictions,
                            "seed": seed,
                        }
                    )
                )
    return pd.concat(frames, ignore_index=True)


def trace(start, end, sweeps=70, scale=8.0, seed=0):
    sweep = np.arange(sweeps + 1)
    noise = np.random.default_rng(seed).normal(0, 0.01, sweeps + 1)
    score = end - (end - start) * np.exp(-sweep / scale) + noise
    changed = 0.7 * (1 - np.exp(-sweep / scale))
    columns = dict(sweep=sweep, score=score, score_se=0.07, changed=changed, rhat=2.8)
    return pd.DataFrame(columns)


def fig3_inputs(seeds=(0,), steps=STEPS):
    def run(description, target, own):
        table = losses((0,), tuple(steps), (target,)).assign(target="test")
        own_losses = losses((0,), tuple(steps[-1:]), (target,)).assign(target="own")
        found = {"test": {"original": True}, "own": TARGETS[own]}
        about = dict(description=description, seed=0, source="docs")
        return generators.Run(about, pd.concat([table, own_losses]), found)

    runs = {
        "n2-test": run(factored(2), "n2", "n2-norm"),
        "n4-test": run(factored(4), "n4", "n4-norm"),
        "bert-test": run(BERT, "bert", "bert-norm"),
        "wide-test": run(factored(2, 160), "n2-wide", "n2-wide"),
    }
    table, numbers = trace(6.6, 10.7), {"chain_seed": 5, "chains": 160}
    made = {
        name: generators.Chains({**TARGETS[name], **numbers}, table)
        for name in ("n2", "n4", "bert", "n4-early", "n4-unigram")
    }
    for name, (start, end) in {"n4": (9.0, 13.3), "bert": (9.6, 11.0)}.items():
        made[name] = generators.Chains(made[name].about, trace(start, end, seed=3))
    for name, evaluation in (
        ("n2-norm", "n2-test"),
        ("n4-norm", "n4-test"),
        ("bert-norm", "bert-test"),
    ):
        own = runs[evaluation].losses.query("target == 'own'")
        score = -own["loss_sum"].sum() / own["predictions"].sum()
        made[name] = generators.Chains(
            {**TARGETS[name], **numbers}, trace(score - 1, score).assign(score=score)
        )
    student = generators.Run(STUDENT, losses(seeds, tuple(steps)), TARGETS)
    return runs, made, student


FIG3 = dict(
    evaluation="bert",
    control="original",
    pairs=[["n4", "n4-70"], ["bert", "bert-70"]],
    generators=["n2-test", "n4-test", "bert-test"],
    wide_generator="wide-test",
    test="test",
    chains=["n2", "n4", "bert"],
)
PASSAGES = [
    ("test text", "the array is returned as a view if possible, and"),
    ("test text", "raised if the " + "index is out of bounds " * 5),
    ("n = 2, order 3", "the the returned $ value of $ array of the\n name"),
    ("n = 2, order 3", "if if the the"),
    ("n = 6, nominal order 33 > L = 16: any order", "the index is returned as a copy if it is not"),
]


def equal_generators(apart=0.0):
    """Losses on test text of the generators, equal but for `apart` between the orders."""
    found = []
    for name in ("n2", "n4-early", "n2-wide", "bert"):
        made = TARGETS[name]["generator"]
        own = np.random.default_rng(len(name)).normal(0, 0.05, 400)
        loss = np.random.default_rng(4).normal(2, 0.5, 400) + own + apart * name.startswith("n2")
        table = pd.DataFrame({"target": "test", "step": made["step"], "sequence": np.arange(400)})
        table = table.assign(loss_sum=16 * loss, correct=0, predictions=16, seed=0)
        about = dict(description=made["description"], seed=made["seed"])
        found.append(comparison.Generator(about, table))
    return found


def learned(draw, seeds=(0, 1, 2), steps=STEPS, block=BLOCK, targets=TARGETS, generators=None):
    made = losses(seeds, tuple(steps)), targets, STUDENT, block
    return draw(*made) if draw is learning.fig1 else draw(*made, generators or equal_generators())


def answers(table, start):
    """Claims that start with `start` -> what they come to."""
    return {row.claim: row.holds for row in table.itertuples() if row.claim.startswith(start)}


@pytest.mark.parametrize(("draw", "name"), [(learning.fig4, "fig. 4"), (learning.fig5, "fig. 5")])
def test_a_learning_figure_draws_the_means_and_runs_of_its_losses(draw, name):
    figure, drawn, found = learned(draw)
    assert list(drawn.columns) == style.FIGURE_COLUMNS
    assert set(drawn["panel"]) == {"loss", "accuracy", "saturation", "late"}
    table = losses()
    mine = table[(table["target"] == "n4") & (table["step"] == 600)]
    runs = mine.groupby("seed")["loss_sum"].sum() / mine.groupby("seed")["predictions"].sum()
    here = drawn[(drawn["series"] == "n = 4, order 9") & (drawn["x"] == 600)]
    for panel in ("loss", "late"):
        rows = here[here["panel"] == panel].set_index("seed")
        assert rows.loc[["0", "1", "2"], "y"].tolist() == pytest.approx(runs.tolist())
        assert rows.loc["mean", ["y", "y_err"]].tolist() == pytest.approx([runs.mean(), runs.std()])
    # The band on the page is the one in the table.
    left = figure.axes[0]
    line = next(line for line in left.lines if line.get_label() == "n = 4, order 9")
    mean = drawn[(drawn["panel"] == "loss") & (drawn["seed"] == "mean")]
    mean = mean[mean["series"] == "n = 4, order 9"]
    assert line.get_xydata() == pytest.approx(mean[["x", "y"]].to_numpy())
    assert left.get_xscale() == "log"
    assert (drawn["x"] > 0).all()
    assert found["claim"].str.contains(name, regex=False).all()


def test_what_was_built_into_the_losses_is_what_the_checks_find():
    _, _, found = learned(learning.fig4)
    assert set(found["kind"]) == {"paper"}
    first = answers(found, "6 (fig. 4): n = 2, order 3 saturates before n = 4, order 9 (5%")
    assert list(first.values()) == ["yes"]
    assert list(answers(found, "11, premise (fig. 4)").values()) == ["yes", "yes"]
    # The checkpoints, 200, 300, 400, 600, do not resolve the times to log 1.25.
    stopped, wide = (answers(found, "11 (fig. 4)")).items()
    for claim, holds in (stopped, wide):
        assert holds == "undecided"
        assert claim.endswith("[checkpoints do not resolve the times]")
        assert "on this corpus, at this scale" in claim
        assert "3 students, these two generators only" in claim
    assert "n = 4, order 9, rank 32, stopped against n = 2, order 3, rank 32" in stopped[0]
    assert set(answers(found, "7 (fig. 4): BERT").values()) == {"yes"}
    (order_33,) = answers(found, "6 (fig. 4): order 33").items()
    assert order_33[1] == "not-run"
    assert "n = 6 needs L >= 33, L = 16" in order_33[0]


def test_the_papers_own_generators_get_rows_of_their_own(monkeypatch):
    """Rows of nominal orders only, under a name that the rows of figure 4 do not have."""
    nominal = {"n2": clone(factored(2, variant="paper"), "n2")}
    nominal["n4"] = clone(factored(4, variant="paper"), "n4")
    block = {key: BLOCK[key] for key in ("evaluation", "ladder", "control", "late_steps")}
    read = (losses(), TARGETS | nominal, STUDENT)
    monkeypatch.setattr(learning, "read", lambda files, block, context: read)
    _, drawn, found = fig4_paper.draw({}, block, {})
    assert set(drawn["series"]) >= {"n = 2, nominal order 3", "n = 4, nominal order 9"}
    assert found["claim"].str.contains("nominal order").all()
    assert found["claim"].str.contains("(fig. 4, variant paper)", regex=False).all()
    start = "6 (fig. 4, variant paper): n = 2, nominal order 3 saturates before n = 4"
    assert "yes" in answers(found, start).values()
    _, _, exact = learned(learning.fig4, block=block)
    assert not set(found["claim"]) & set(exact["claim"])


def test_claims_without_their_clones_are_not_run():
    block = {key: BLOCK[key] for key in ("evaluation", "ladder", "control", "late_steps")}
    _, drawn, found = learned(learning.fig4, block=block)
    for start, count in (("11 (", 2), ("12 (", 1), ("section 8", 1)):
        assert list(answers(found, start).values()) == ["not-run"] * count
    assert not drawn["series"].str.contains("stopped|rank").any()


@pytest.mark.parametrize(
    ("draw", "seeds", "steps"),
    [
        (learning.fig4, (0, 1), [0, 4]),
        (learning.fig5, (0,), [0, 2, 4]),
        (learning.fig1, (3,), [4]),
    ],
)
def test_a_smoke_run_is_drawn_and_decides_nothing(draw, seeds, steps):
    block = BLOCK | {"late_steps": [2, 4]}
    _, drawn, found = learned(draw, seeds, steps, block)
    assert len(drawn)
    decided = found[~found["claim"].str.startswith(("section 8", "11, premise"))]
    assert set(decided["holds"]) <= {"undecided", "not-run"}


def test_figure_1_has_a_linear_axis_of_epochs():
    figure, drawn, found = learned(learning.fig1)
    assert figure.axes[0].get_xscale() == "linear"
    assert "epoch" in figure.axes[0].get_xlabel()
    assert drawn["x"].max() == pytest.approx(STEPS[-1] / STUDENT["steps_per_epoch"])
    assert {"6", "9"} == {claim.split()[0] for claim in found["claim"]}


def test_one_colour_of_the_config_changes_one_series():
    plain = learned(learning.fig1)[0].axes[0].lines
    changed = learned(learning.fig1, block=BLOCK | {"colours": {"n4": "#123456"}})[0].axes[0].lines
    new = [line.get_color() for line in changed]
    differing = [
        one.get_label() for one, two in zip(plain, new, strict=True) if one.get_color() != two
    ]
    assert differing == ["n = 4, order 9"]
    assert "#123456" in new


def test_figure_3_draws_generators_chains_and_sweeps():
    figure, drawn, found = generators.fig3(*fig3_inputs(), FIG3)
    assert list(drawn.columns) == style.FIGURE_COLUMNS
    counts = drawn.groupby("panel")["series"].nunique()
    assert counts.to_dict() == {"a": 4, "b": 3, "c": 4}
    assert len(drawn[drawn["panel"] == "b"]) == 3 * 71
    assert [len(axes.lines) for axes in figure.axes] == [4, 3, 4]
    assert list(answers(found, "2 (fig. 3a): n = 4, order 9 beats").values()) == ["yes"]
    assert list(answers(found, "2 (fig. 3a): n = 6").values()) == ["not-run"]
    identities = found[found["kind"] == "exact"]
    assert identities["holds"].tolist() == ["confirmed"] * 3
    assert set(answers(found, "chains (fig. 3b): BERT, any order: split R-hat").values()) == {"no"}
    kept = found[found["claim"].str.contains("share of the start's tokens after 70")]
    assert kept["value"].tolist() == pytest.approx([0.3] * 3, abs=0.01)
    assert set(kept["holds"]) == {"no"}
    words = figure.axes[1].get_legend().get_texts()[0].get_text()
    assert "2.8" in words
    assert "30% of the start kept" in words
    assert set(answers(found, "4 (fig. 3b)").values()) >= {"no"}  # twenty sweeps are too few
    assert len(answers(found, "5 (fig. 3c)")) == 2


def test_bands_of_figure_3_lie_a_standard_error_to_either_side():
    figure, drawn, _ = generators.fig3(*fig3_inputs(), FIG3)
    bands = figure.axes[0].collections
    quality = drawn[drawn["panel"] == "a"]
    assert len(bands) == quality["series"].nunique()
    for band, (_, curve) in zip(bands, quality.groupby("series", sort=False), strict=True):
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
        for sign in (-1, 1):
            edge = (curve["y"] + sign * curve["y_err"]).round(9)
            assert set(zip(curve["x"].astype(float), edge, strict=True)) <= corners


def test_a_wrong_energy_of_the_sampler_fails_a_gate():
    runs, chains, student = fig3_inputs()
    about, trace = chains["n4-norm"]
    chains["n4-norm"] = generators.Chains(about, trace.assign(score=trace["score"] + 0.001))
    found = generators.fig3(runs, chains, student, FIG3)[2]
    assert list(answers(found, "3 (fig. 3): n = 4").values()) == ["contradicted"]


def test_a_share_of_the_positions_is_not_taken_for_an_energy():
    runs, chains, student = fig3_inputs()
    runs = {
        name: run._replace(losses=run.losses.assign(predictions=8)) for name, run in runs.items()
    }
    found = generators.fig3(runs, chains, student, FIG3)[2]
    assert not answers(found, "3 (fig. 3)")


def test_a_clone_is_a_sample_where_its_twins_agree():
    runs, chains, student = fig3_inputs()
    plain = generators.fig3(runs, chains, student, FIG3)[2]
    assert list(answers(plain, "chains (fig. 3b): a clone").values()) == ["not-run"]
    block = FIG3 | {"twins": [{"evaluation": "n4-test", "text": "n4-70", "noise": "n4-unigram"}]}
    run = runs["n4-test"]
    own = run.losses.query("target == 'own'")
    both = [own.assign(target=name) for name in ("n4-70", "n4-unigram")]
    targets = run.targets | {name: TARGETS[name] for name in ("n4-70", "n4-unigram")}
    runs["n4-test"] = run._replace(losses=pd.concat([run.losses, *both]), targets=targets)
    targets["n4-70"] = TARGETS["n4-70"] | {"clone": "n4"}
    start = "chains (fig. 3b): n = 4, order 9, raw score: after 70 sweeps a clone is a sample"

    def answer(**changes):
        numbers = chains["n4"].about
        made = trace(9.0, 13.0, seed=3).assign(**changes)
        given = chains | {name: generators.Chains(numbers, made) for name in ("n4", "n4-unigram")}
        (holds,) = answers(generators.fig3(runs, given, student, block)[2], start).values()
        return holds

    assert answer(rhat=1.02) == "yes"
    assert answer() == "no"  # R-hat 2.8


def test_an_inversion_of_the_generators_is_a_no():
    block = FIG3 | {"generators": ["bert-test", "n4-test", "n2-test"]}
    found = generators.fig3(*fig3_inputs(), block)[2]
    assert set(answers(found, "2 (fig. 3a): n = ").values()) == {"no", "not-run"}


def test_figure_3_of_a_smoke_run_is_drawn():
    runs, chains, student = fig3_inputs((0,), [0, 4])
    short = {name: generators.Chains(c.about, c.trace[:3]) for name, c in chains.items()}
    runs = {name: run._replace(targets={"test": {"original": True}}) for name, run in runs.items()}
    found = generators.fig3(runs, short, student, FIG3)[2]
    assert not answers(found, "3 (fig. 3)")
    assert "yes" not in answers(found, "5 (fig. 3c)").values()


def test_table_1_keeps_the_text_as_it_is():
    figure, drawn, found = passages.table1(PASSAGES, 0, {"sweep": 20})
    assert drawn.to_numpy().tolist() == [list(passage) for passage in PASSAGES]
    shown = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert "value of $ array" in shown
    assert found["holds"].tolist() == ["confirmed", "not-run"]
    assert passages.table1(PASSAGES, 3, {"sweep": 20})[2]["holds"].iloc[0] == "contradicted"


def test_files_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        figure, drawn, _ = learned(learning.fig1)
        style.save(figure, drawn, tmp_path / folder / "fig1")
    for kind in ("pdf", "png", "csv"):
        one, two = ((tmp_path / folder / f"fig1.{kind}").read_bytes() for folder in ("one", "two"))
        assert one == two
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "fig1.csv",
        "fig1.pdf",
        "fig1.png",
    ]
    assert b"CreationDate" not in (tmp_path / "one" / "fig1.pdf").read_bytes()


def test_legends_say_the_order_and_what_it_is_worth():
    assert labels.generator(factored(2)) == "n = 2, order 3"
    assert labels.generator(factored(4, variant="paper")) == "n = 4, nominal order 9"
    assert labels.generator(factored(1, variant="paper")) == "n = 1, order 2"
    assert labels.generator(factored(6)) == "n = 6, order 33 > L = 16: any order"
    assert labels.generator(factored(6, length=33)) == "n = 6, order 33"
    assert labels.generator(BERT) == "BERT, any order"
    assert labels.target(TARGETS["n4-early"]) == "n = 4, order 9, stopped at step 700"
    assert labels.target(TARGETS["n2-wide"], rank=True) == "n = 2, order 3, rank 160"
    assert labels.short(TARGETS["n4"]) == "9"
    assert labels.short(clone(factored(6), "n6")) == "33\n> L"


def test_order_33_is_a_rung_like_any_other_where_it_is_a_restriction():
    targets = {
        name: document
        if document["original"]
        else clone(document["generator"]["description"] | {"length": 64}, name)
        for name, document in TARGETS.items()
    }
    targets["n4-early"] = clone(factored(6, length=64), "n6")
    block = BLOCK | {"ladder": ["n2", "n4", "n4-early", "bert"]}
    found = learned(learning.fig1, block=block, targets=targets)[2]
    assert not answers(found, "6 (fig. 1): order 33")
    assert answers(found, "6 (fig. 1): n = 4, order 9 saturates before n = 6, order 33 (5%")


def test_a_figure_needs_what_its_block_names():
    evaluations = {
        "bert": {
            "seeds": [0, 1],
            "targets": {"n2": {"clone": "n2", "sweep": 20}, "o": {"starts": "n2"}},
        },
        "n2-test": {"seeds": [0], "targets": {"own": {"clone": "n2-norm", "sweep": 20}}},
    }
    config = {"evaluations": evaluations}
    block = {"evaluation": "bert", "seeds": [1], "generators": ["n2-test"], "chains": ["n4"]}
    found = needs(block, config)
    assert found["runs"] == [["bert", 1], ["n2-test", 0]]
    assert needs({"corpora": [block, {"evaluation": "n2-test"}]}, config)["runs"] == found["runs"]
    assert found["clones"] == ["n2", "n2-norm", "n4"]
    assert found["targets"] == {name: entry["targets"] for name, entry in evaluations.items()}
    assert needs({"evaluation": "bert"}, config)["runs"] == [["bert", 0], ["bert", 1]]
    assert needs({"clones": ["n4"]}, config)["clones"] == ["n4"]
    config["sources"] = {"potts": {"length": 10}}
    part = {
        "source": "potts",
        "networks": [{"model": "n1", "seeds": [0, 2]}],
        "protocols": [{"model": "n1", "seeds": [2, 3]}],
        "lines": ["pair"],
        "truth": "true",
    }
    runs = [["n1", 0], ["n1", 2], ["n1", 3], ["pair", 0], ["true", 0]]
    for block in (part, {"parts": [part, part]}):
        found = needs(block, config)
        assert found["models"] == [["potts", *run] for run in runs]
        assert found["sources"] == config["sources"]
    assert needs({**part, "exact": "identities"}, config)["theory"] == ["identities"]
    assert needs({"theory": "flow"}, config)["theory"] == ["flow"]


def test_the_figure_says_what_the_controls_show():
    figure, _, found = learned(learning.fig4)
    title = figure.legends[0].get_title().get_text()
    claims = [row for row in found.itertuples() if row.claim.startswith("11 (")]
    for row, line in zip(claims, title.splitlines()[1:], strict=True):
        assert f"d = {row.value:.3f} (" in line
        assert line.endswith(f"above 0.22 if the order set the time: {row.holds}")


def test_generators_of_unequal_loss_leave_claim_11_undecided():
    _, _, found = learned(learning.fig4, generators=equal_generators(0.2))
    assert list(answers(found, "11, premise").values()) == ["no", "no"]
    assert all("[equal loss: no;" in claim for claim in answers(found, "11 (fig. 4)"))
    # The premises are about the generators alone: they are rows of one figure.
    assert not answers(learned(learning.fig5)[2], "11, premise")


REPORT = Path(__file__).parents[2] / "workflow" / "report"


def test_rows_about_the_same_runs_are_counted_once():
    folder = Path(__file__).parents[2] / "config"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    figures = config["figures"]["simplicity"]
    shared = {name: needs(block, config)["elsewhere"] for name, block in figures.items()}
    assert {name: other for name, other in shared.items() if other} == {
        "fig1": "fig4",
        "fig2_seeds": "fig2",
    }
    given = losses(), TARGETS, STUDENT, BLOCK
    assert len(learning.fig1(*given)[2])
    assert not len(learning.fig1(*given, "fig4")[2])
    snakemake.utils.update_config(config, yaml.safe_load((folder / "paper.yaml").read_text()))
    assert {needs(block, config)["elsewhere"] for block in figures.values()} == {None}


@pytest.mark.parametrize("scale", ["config", "smoke", "paper", "headline"])
@pytest.mark.parametrize("path", sorted(REPORT.rglob("*.rst")), ids=lambda path: path.stem)
def test_captions_render(path, scale):
    folder = Path(__file__).parents[2] / "config"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    if scale != "config":
        snakemake.utils.update_config(
            config, yaml.safe_load((folder / f"{scale}.yaml").read_text())
        )
    block = config["figures"].get(path.parent.name, {}).get(path.stem)
    if block is None and path.parent != REPORT:
        pytest.skip(f"{scale}.yaml draws no {path.stem}")
    job = SimpleNamespace(config=config, params=SimpleNamespace(block=block))
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(path.read_text())
    text = template.render(snakemake=job)
    assert "{" not in text
    publish_parts(text, writer="html", settings_overrides={"halt_level": 2})
    if path.match("simplicity/fig1.rst") and scale != "paper":
        assert "not WikiText-103" in text
        for corpus in config["corpora"].values():
            corpus["kind"] = "wikitext103"
        assert "not WikiText-103" not in template.render(snakemake=job)


# --- From files --------------------------------------------------------------------------------


def write_run(folder, description, seed):
    folder.mkdir(parents=True)
    history = pd.DataFrame({"step": [0, 3000], "epoch": [0.0, 15.0], "loss": [6.0, 1.8]})
    history.to_parquet(folder / "history.parquet")
    about = dict(description=description, source="docs", seed=seed)
    write_manifest(folder / "manifest.json", "model", ["history.parquet"], about)
    return folder / "manifest.json"


def write_clone(folder, document, starts):
    folder.mkdir(parents=True)
    trace(5.0, 9.0).to_parquet(folder / "trace.parquet")
    names = ["trace.parquet", "starts.parquet"]
    sequences.write(folder / "starts.parquet", starts, 400, {})
    for sweep in (20, 70):
        sequences.write(folder / f"sweep-{sweep}.parquet", (starts + sweep) % 400, 400, {})
        names.append(f"sweep-{sweep}.parquet")
    about = {key: document[key] for key in ("generator", "energy", "start")}
    about |= {"chain_seed": 5, "chains": len(starts)}
    write_manifest(folder / "manifest.json", "clones", names, about)
    return folder / "manifest.json"


@pytest.fixture
def made(tmp_path):
    """The config of a figure and the files that the rules before it would have made."""
    clones = [name for name, document in TARGETS.items() if not document["original"]]
    targets = {name: {"clone": name, "sweep": TARGETS[name]["sweep"]} for name in clones}
    targets["original"] = {"starts": "n2"}
    evaluations = {"bert": {"seeds": [0, 1], "targets": targets}}
    models = {"n2-test": factored(2), "n4-test": factored(4), "bert-test": BERT}
    for name in models:
        evaluations[name] = {"seeds": [0], "targets": {"test": {"split": "test"}}}
    models |= {"bert": BERT}
    starts = np.random.default_rng(0).integers(0, 400, (4, LENGTH))
    paths = {"losses": {}, "runs": {}, "clones": {}}
    for name in clones:
        folder = tmp_path / "clones" / name
        paths["clones"][name] = write_clone(folder, TARGETS[name], starts)
    for name, evaluation in evaluations.items():
        for seed in evaluation["seeds"]:
            run = (name, seed)
            table = losses((seed,))
            if name != "bert":
                table = table[table["target"] == "n2"].assign(target="test")
            paths["runs"][run] = write_run(tmp_path / name / f"seed-{seed}", models[name], seed)
            paths["losses"][run] = tmp_path / "losses" / name / f"seed-{seed}.parquet"
            tables.write_losses(paths["losses"][run], table.drop(columns="seed"), {})

    def files(block):
        context = needs(block, {"evaluations": evaluations})
        named = {"clones": [paths["clones"][name] for name in context["clones"]]}
        for kind in ("losses", "runs"):
            named[kind] = [paths[kind][tuple(run)] for run in context["runs"]]
        return named, context

    return files


@pytest.mark.parametrize("figure", ["fig1", "fig4"])
def test_learning_figures_are_drawn_from_files(made, figure):
    files, context = made(BLOCK)
    module = import_module(f"manybody.plotting.simplicity.{figure}")
    _, drawn, found = module.draw(files, BLOCK, context)
    given = (losses((0, 1)), TARGETS, STUDENT, BLOCK)
    if figure == "fig4":
        given += (comparison.read_generators(files, BLOCK["generators"], context),)
    expected = getattr(learning, figure)(*given)
    pd.testing.assert_frame_equal(drawn, expected[1])
    pd.testing.assert_frame_equal(found, expected[2])


def test_the_headline_is_drawn_from_files(made):
    part = {key: BLOCK[key] for key in ("evaluation", "control", "generators", "test")}
    part["comparisons"] = [{"late": ["bert"], "early": ["n2-wide"]}]
    files, context = made({"corpora": [part]})
    module = import_module("manybody.plotting.simplicity.headline")
    _, drawn, found = module.draw(files, {"corpora": [part]}, context)
    seeds = drawn[drawn["panel"] == "times"].groupby("series")["seed"].unique()
    assert {tuple(sorted(set(one))) for one in seeds} == {("0", "1")}
    given = losses((0, 1)), TARGETS, STUDENT, part
    expected = module.headline(
        [(*given, comparison.read_generators(files, part["generators"], context))]
    )
    pd.testing.assert_frame_equal(drawn, expected[1])
    pd.testing.assert_frame_equal(found, expected[2])
    # The wide generator of the clone is not among the runs that were tested.
    assert list(answers(found, "11, premise").values()) == ["not-run"]


def test_figure_3_is_drawn_from_files(made):
    block = {key: value for key, value in FIG3.items() if key != "wide_generator"} | {"seeds": [1]}
    files, context = made(block)
    _, drawn, _ = fig3.draw(files, block, context)
    student = drawn[drawn["panel"] == "c"]
    assert set(student["seed"]) == {1}
    assert set(drawn["panel"]) == {"a", "b", "c"}


def test_table_1_is_drawn_from_files(made, tmp_path):
    tokenizer = Tokenizer(WordLevel({f"w{number}": number for number in range(400)}))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    block = {"clones": ["n2", "bert"], "sweep": 20, "passages": [1, 3]}
    files, context = made(block)
    files["tokenizer"] = tmp_path / "tokenizer.json"
    _, drawn, found = import_module("manybody.plotting.simplicity.table1").draw(
        files, block, context
    )
    assert drawn["series"].tolist()[::2] == ["test text", "n = 2, order 3", "BERT, any order"]
    first = [int(word[1:]) for word in drawn["text"][0].split()]
    moved = [int(word[1:]) for word in drawn["text"][2].split()]
    assert moved == [(token + 20) % 400 for token in first]
    assert found["holds"].tolist() == ["confirmed", "not-run"]
    with pytest.raises(ValueError, match=r"passages \[4\]"):
        import_module("manybody.plotting.simplicity.table1").draw(
            files, block | {"passages": [1, 4]}, context
        )
