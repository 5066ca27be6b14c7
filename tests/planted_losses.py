"""Losses, chains and clones with planted times and qualities, as figures of text read them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import planted_runs

from manybody.io import sequences, tables
from manybody.io.manifest import write_manifest
from manybody.papers.inputs import distinct, with_files
from manybody.papers.simplicity import fig1, fig3, fig4
from manybody.papers.simplicity.students import Chains, Evaluated

STEPS = [0, 1, 3, 10, 30, 100, 150, 200, 300, 400, 600, 800, 1000, 1400, 1800, 2200, 2600, 3000]
SEQUENCES, LENGTH = 40, 16


def factored(layers, rank=32, length=LENGTH, variant="exact"):
    sizes = dict(layers=layers, rank=rank, bias=True, variant=variant)
    return dict(architecture="factored", vocabulary=400, length=length, **sizes)


BERT = dict(
    architecture="bert", vocabulary=400, length=LENGTH, layers=2, heads=4, width=64, mlp=128
)


def clone(
    description, name, sweep=20, energy="raw", chain_init="test", step=2500, last=True, seed=0
):
    generator = dict(model=name, seed=seed, step=step, last=last, description=description)
    return dict(
        original=False,
        clone=name,
        sweep=sweep,
        length=description["length"],
        generator=generator,
        energy=energy,
        chain_init=chain_init,
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
    "n4-unigram": clone(factored(4), "n4-unigram", 70, chain_init="unigram"),
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
)
STUDENT = dict(description=BERT, source="docs", seed=0)
HISTORY = pd.DataFrame({"step": [0, 3000], "epoch": [0.0, 15.0], "loss": [6.0, 1.8]})


def curve(target, steps=STEPS):
    final, middle, rise = SHAPES.get(target) or SHAPES[target.split("-")[0]]
    steps = np.asarray(steps, float)
    plateau = 6.1 - 1.9 * (1 - np.exp(-steps / 30))
    fall = 1 / (1 + (middle / np.maximum(steps, 1e-9)) ** 3)
    return plateau + (final - 4.2) * fall + rise * np.log1p(steps / 600) * fall


def table(target, seed, steps, loss, correct=0, length=LENGTH):
    """Rows of sequences whose mean `loss` (steps, sequences) is that of all their positions."""
    place, sequence = np.indices(loss.shape)
    where = dict(target=target, seed=seed, step=np.asarray(steps, int)[place.ravel()])
    sums = dict(loss_sum=length * loss.ravel(), correct=correct, predictions=length)
    return pd.DataFrame(where | dict(sequence=sequence.ravel()) | sums)


@cache
def losses(seeds=(0, 1, 2), steps=tuple(STEPS), targets=tuple(TARGETS)):
    # The difficulty of a sequence is its own, whatever the checkpoint.
    difficulty = np.random.default_rng(1).normal(0, 0.15, SEQUENCES)
    frames = []
    for seed in seeds:
        noise = np.random.default_rng(seed)
        for target in targets:
            level = curve(target, steps) + noise.normal(0, 0.02, len(steps))
            loss = level[:, None] + difficulty
            loss += noise.normal(0, 0.02, loss.shape)
            correct = np.rint(LENGTH * np.clip(0.75 - 0.11 * loss, 0, 1)).ravel()
            frames.append(table(target, seed, steps, loss, correct))
    return pd.concat(frames, ignore_index=True)


def trace(start, end, sweeps=70, scale=8.0, seed=0):
    sweep = np.arange(sweeps + 1)
    noise = np.random.default_rng(seed).normal(0, 0.01, sweeps + 1)
    score = end - (end - start) * np.exp(-sweep / scale) + noise
    changed = 0.7 * (1 - np.exp(-sweep / scale))
    return pd.DataFrame(dict(sweep=sweep, score=score, score_se=0.07, changed=changed, rhat=2.8))


FIG3 = dict(
    evaluation="bert",
    control="original",
    pairs=[["n4", "n4-70"], ["bert", "bert-70"]],
    generators=["n2-test", "n4-test", "bert-test"],
    wide_generator="wide-test",
    test="test",
    chains=["n2", "n4", "bert"],
)


def quality(seeds=(0,), steps=STEPS):
    """What figure 3 compares: runs of evaluations, the student's among them, and chains."""

    def run(description, target):
        table = losses((0,), tuple(steps), (target,)).assign(target="test")
        about = dict(description=description, seed=0, source="docs")
        return Evaluated(about, table, {"test": {"original": True}})

    runs = {
        "bert": Evaluated(STUDENT, losses(seeds, tuple(steps)), TARGETS),
        "n2-test": run(factored(2), "n2"),
        "n4-test": run(factored(4), "n4"),
        "bert-test": run(BERT, "bert"),
        "wide-test": run(factored(2, 160), "n2-wide"),
    }
    traces = {
        "n2": trace(6.6, 10.7), "n4-unigram": trace(6.6, 10.7), "n4": trace(9.0, 13.3, seed=3),
        "bert": trace(9.6, 11.0, seed=3),
    }  # fmt: skip
    return runs, {name: chains(name, table) for name, table in traces.items()}


def chains(name, table, **about):
    """A clone's chains with this trace."""
    return Chains(TARGETS[name] | {"chain_seed": 5, "chains": 160} | about, table)


def paired(runs, made, noise=0.0, **changes):
    """The same with chains of n4 from text and from noise, both with a trace that is changed so.

    noise: added to the generator's loss on chains from noise.
    """
    run = runs["n4-test"]
    last = run.losses[run.losses["step"] == STEPS[-1]]
    both = {"n4-70": 0.0, "n4-unigram": noise}
    own = [
        last.assign(target=name, loss_sum=last["loss_sum"] + LENGTH * more)
        for name, more in both.items()
    ]
    targets = run.targets | {name: TARGETS[name] for name in both}
    targets["n4-70"] = TARGETS["n4-70"] | {"clone": "n4"}
    run = replace(run, losses=pd.concat([run.losses, *own]), targets=targets)
    table = trace(9.0, 13.0, seed=3).assign(**changes)
    agreed = {name: chains(name, table) for name in ("n4", "n4-unigram")}
    return runs | {"n4-test": run}, made | agreed


def equal_generators(documents, apart=0.0):
    """Losses on test text of the generators of clones; those of low order are worse by `apart`.

    documents: of the clones, each with its generator.
    """
    found = []
    for place, document in enumerate(documents):
        made = document["generator"]
        low = made["model"].startswith(("n2", "wide", "low"))
        own = np.random.default_rng(50 + place).normal(apart * low, 0.05, 400)
        loss = np.random.default_rng(4).normal(2, 0.5, 400) + own
        about = dict(description=made["description"], seed=made["seed"])
        found.append(Evaluated(about, table("test", made["seed"], [made["step"]], loss[None]), {}))
    return found


def student(seeds=(0, 1, 2), steps=STEPS, targets=TARGETS):
    """A student that was tested on all clones."""
    return Evaluated(STUDENT, losses(seeds, tuple(steps)), targets, HISTORY)


def of_figure_4(block=BLOCK, **settings):
    """Tables of figure 4."""
    generators = equal_generators([TARGETS[name] for name in ("n2", "n4-early", "n2-wide", "bert")])
    return fig4.tables_of(student(**settings), generators, fig4.Block.model_validate(block))


def of_figure_1(block=BLOCK, claims_reported_by=None, **settings):
    """Tables of figure 1."""
    keys = {key: block[key] for key in ("evaluation", "ladder", "control")}
    return fig1.tables_of(student(**settings), fig1.Block.model_validate(keys), claims_reported_by)


def of_figure_3(found=None, block=FIG3):
    """Tables of figure 3, of what `quality` gives."""
    return fig3.tables_of(*(found or quality()), fig3.Block.model_validate(block))


def write_clone(folder, document, starts):
    folder.mkdir(parents=True)
    trace(5.0, 9.0).to_parquet(folder / "trace.parquet")
    names = ["trace.parquet", "starts.parquet"]
    sequences.write(folder / "starts.parquet", starts, 400, {})
    for sweep in (20, 70):
        sequences.write(folder / f"sweep-{sweep}.parquet", (starts + sweep) % 400, 400, {})
        names.append(f"sweep-{sweep}.parquet")
    about = {key: document[key] for key in ("generator", "energy", "chain_init")}
    about |= {"chain_seed": 5, "chains": len(starts)}
    write_manifest(folder / "manifest.json", "clones", names, about)
    return folder / "manifest.json"


def written(folder):
    """Writes what the rules before a figure would have made.

    Returns a function from a figure's module and block to its inputs with their files.
    """
    clones = [name for name, document in TARGETS.items() if not document["original"]]
    targets = {name: {"clone": name, "sweep": TARGETS[name]["sweep"]} for name in clones}
    targets["original"] = {"initial": "n2"}
    evaluations = {"bert": {"seeds": [0, 1], "targets": targets}}
    models = {"n2-test": factored(2), "n4-test": factored(4), "bert-test": BERT}
    for name in models:
        evaluations[name] = {"seeds": [0], "targets": {"test": {"split": "test"}}}
    models |= {"bert": BERT}
    starts = np.random.default_rng(0).integers(0, 400, (4, LENGTH))
    for name in clones:
        write_clone(folder / "clones" / name, TARGETS[name], starts)
    for name, evaluation in evaluations.items():
        evaluation |= {"source": "docs", "model": name}
        for seed in evaluation["seeds"]:
            table = losses((seed,))
            if name != "bert":
                table = table[table["target"] == "n2"].assign(target="test")
            about = dict(description=models[name], source="docs", seed=seed)
            history = planted_runs.rows([0, 15], [6.0, 1.8], 1, 200)
            planted_runs.write(folder / name / f"seed-{seed}", history, **about)
            path = folder / "losses" / name / f"seed-{seed}.parquet"
            tables.LOSSES.write(path, table.drop(columns="seed"), {})
    made = {"chains": 4, "energy": "raw", "source": "docs"}
    config = {
        "evaluations": evaluations,
        "models": models,
        "sources": {
            "docs": {"kind": "text", "corpus": "letters", "length": LENGTH, "vocabulary": 400}
        },
        "clones": dict.fromkeys(clones, made),
    }
    paths = {
        "losses": lambda key: folder / "losses" / key.evaluation / f"seed-{key.seed}.parquet",
        "runs": lambda key: folder / key.evaluation / f"seed-{key.seed}/manifest.json",
        "clones": lambda key: folder / "clones" / key.clone / "manifest.json",
        "tokenizers": lambda key: folder / "tokenizer.json",
    }

    def inputs(module, block):
        block = module.Block.model_validate(block)
        given = module.Inputs.of(block, config)
        files = {}
        for key in distinct(given):
            for kind in key.KINDS:
                files.setdefault(kind, []).append(str(paths[kind](key)))
        return with_files(given, files), block

    return inputs
