"""Hundreds of mistakes in a valid config: each is refused with key, value, expectation and fix."""

import copy
import re
from functools import cache

import pytest
import yaml
from configs import load
from hypothesis import HealthCheck, given, settings, strategies as st
from repository import ROOT
from snakemake.utils import update_config

from manybody.pipeline.check import ConfigError, check

# Mappings whose keys are names that the user gives.
NAMES = re.compile(
    r"|corpora|sources|models|clones|evaluations|spectra|theory|curves|figures(\.[^.]+)?"
    r"|evaluations\.[^.]+\.targets|corpora\.[^.]+\.(packages|files|sha256)"
    r"|theory\.docstrings\.questions\.packages|.*\.colours"
)
OPTIONAL = re.compile(
    r"corpora\.[^.]+\.(seed|deduplicate|marker|column|files|sha256)|corpora\.letters\.(split|boundary)"
    r"|sources\.[^.]+\.(blocks|split\.by)"
    r"|spectra\.[^.]+\.(anchored|bounded|passage)|figures\.simplicity\.spectrum\.(generators|laws)"
    r"|sources\.[^.]+\.blocks\..*|models\.[^.]+\.(heads|attention|init_scale|parameters)"
    r"|models\..*\.(loss|every|subset|validation_masks|divergence|device|stream|training\.sequence_weights)"
    r"|figures\..*\.(seeds|protocols|exact|wide_generator|early_stopped|twins"
    r"|wide|norm|interpolation|truth|separation)|figures\.simplicity\.fig[45]\.generators"
    r"|theory\.((trec|docstrings)\.vocabulary|gamp\.activation)|models\..*\.weights"
    r"|sources\.potts\.temperature\.hamming"
)
REQUIRED_ANYWAY = re.compile(
    r"models\.(bert|gpt|potts-encoder)[^.]*\.heads|corpora\.(pydocs\.sha256|letters\.files)"
    r"|figures\.potts\.fig2\.runs\[\d+\]\.seeds|figures\.potts\.fig2\.interpolation\[\d+\]\.seeds"
    r"|figures\.simplicity\.fig2\.(networks|protocols)\[\d+\]\.seeds"
)
FREE_TEXT = re.compile(
    r".*\.(label|file|marker|column|truth|questions|tokenizer)|corpora\..*\.files.*"
)

# What the default config leaves out: the other kinds of corpora, sources, theory and figures.
MORE = """
corpora:
  letters: {kind: file, files: [letters.txt], boundary: marker, marker: "***",
            split: {train: 0.8, validation: 0.1, test: 0.1}, seed: 3}
  stories: {kind: tinystories, split: published,
            revision: 0123456789abcdef0123456789abcdef01234567}
sources:
  letters: {kind: text, corpus: letters, vocabulary: 300, length: 8, end_of_document: kept,
            blocks: {train: 100, validation: 20, test: 20}}
  family: {kind: alignment, file: family.sto, format: stockholm, alphabet: rna, identity: 0.8,
           split: {train: 0.8, validation: 0.1, test: 0.1, by: random}, seed: 0}
theory:
  evolution: &evolution
    {kind: multi-index-state-evolution, skip: 1.0, activation: softmax, regulariser: 0.0,
     alphas: [0.1, 1.0], points: 1024, scrambles: 4, side_information: 0.1,
     seed: 0, threads: 1}
  held: {kind: multi-index-fixed-overlap, skip: 1.0, activation: softmax, regulariser: 0.0,
     alpha: 1.0, overlaps: [0.5], points: 1024, scrambles: 4, side_information: 0.1, seed: 0,
     threads: 1}
  thresholds: {kind: multi-index-thresholds, activation: linear, skips: [0.5, 1.0],
     regulariser: 0.0, tolerance_1: 0.01, points: 1024, scrambles: 4, seed: 0, threads: 1}
  deep: {kind: multi-index-deep, skip: 1.0, alphas: [1.0], skips: [1.0], points: 1024,
     scrambles: 4, regulariser: 0.0, seed: 0, threads: 1}
  gamp: {kind: multi-index-gamp, skip: 1.0, activation: linear, dimension: 100,
     alphas: [0.5, 1.0], runs: 2, iterations: 10, damping: 1.0, regulariser: 0.0, noise: 0.0,
     init: informed, overlaps: [0.1, 0.2], side_information: 0.1, points: 1024, seed: 0,
     threads: 1}
  sgd: {kind: multi-index-sgd, skip: 1.0, dimension: 100, alpha: 1.0, batch: 10, repeats: 1,
     learning_rate: 0.1, weight_decay: 0.0, init_scale: 0.1, epochs: 2, runs: 2, same_teacher: true,
     seed: 0, threads: 1}
  trec: {kind: multi-index-trec, questions: null, tokenizer: null, vocabulary: 500, length: 10,
     width: 16, hidden: 4, init_scale: 0.1, held_out: 0.2, batch: 10, learning_rate: 0.01,
     epsilon: 1.0e-8, epochs: 2, runs: 2, seed: 0, threads: 1}
figures:
  multi-index:
    fig1: {theory: {state_evolution: evolution, regularised: evolution, gamp: gamp,
                    thresholds: thresholds}}
    fig2: {theory: {gamp: gamp, sgd: sgd}}
    fig3: {theory: {deep: deep, deep_regularised: deep, trec: trec, docstrings: trec}}
    fig5: {theory: {fixed_overlap: held}}
"""


@cache
def shipped():
    """The default config, laid over nothing; and with one entry of each kind it leaves out."""
    full = load()
    for block, entries in yaml.safe_load(MORE).items():
        full[block].update(entries)
    return load(), full


def walk(node, steps=(), path=""):
    """Every place of a config: steps to it, its dotted path, its value."""
    if steps:
        yield steps, path, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from walk(value, (*steps, key), f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from walk(value, (*steps, number), f"{path}[{number}]")


def mutations():
    """(what is done, steps, dotted path that is named, new key or value)."""
    for steps, path, value in walk(shipped()[1]):
        key = steps[-1]
        simple = re.sub(r"(models\.potts-a0)\.\d+", r"\1", path)  # without the dot of a name
        optional = OPTIONAL.fullmatch(simple) and not REQUIRED_ANYWAY.fullmatch(simple)
        named = NAMES.fullmatch(simple.rpartition(".")[0])  # by the user
        if isinstance(key, str) and (len(steps) == 1 or not named):
            if not optional:
                yield "missing", steps, path, None
            wrong = key[:1] + key  # the first letter twice
            yield "misspelt", steps, path.removesuffix(key) + wrong, wrong
        for wrong in wrong_types(value, simple):
            yield "wrong type", steps, path, wrong
        for wrong in out_of_range(value, simple):
            yield "out of range", steps, path, wrong


def wrong_types(value, path):
    if isinstance(value, bool):
        yield from ("yes please", 3, ["odd"], {"odd": 1})
    elif isinstance(value, int | float):
        yield from ("many", {"odd": value}, True)
        if not ONE_OR_SEVERAL.fullmatch(path):
            yield [value]
    elif isinstance(value, str):
        yield from ([value], {"odd": value})
        if value.isidentifier() or "-" in value:
            yield 7.5
    elif isinstance(value, list):
        yield from (3.5, {"odd": "odd"}, "a, b")
    elif isinstance(value, dict):
        yield from (3.5, ["odd"])
        if not FREE_TEXT.fullmatch(path):
            yield "odd one"
    if isinstance(value, int) and not isinstance(value, bool) and not WHOLE_ENOUGH.fullmatch(path):
        yield from (value + 0.5, float(value))  # 2.0 is no number of layers


ONE_OR_SEVERAL = re.compile(r"models\..*\.start|spectra\.[^.]+\.steps")
# Integers in the config where the schema takes any number.
WHOLE_ENOUGH = re.compile(r"models\..*\.(a|learning_rate)|figures.*\.a|.*\.(skip|alpha|time)")


def out_of_range(value, path):
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield from (float("nan"), float("inf"))
        if not path.endswith(".skewness"):
            yield -3 if isinstance(value, int) else -1.0e9
    elif isinstance(value, str) and not FREE_TEXT.fullmatch(path):
        yield from ("", "no such choice!", "a\n")


def mutated(config, kind, steps, change):
    """The config with one thing changed; what lies beside the way there is shared."""
    config = parent = copy.copy(config)
    for step in steps[:-1]:
        parent[step] = copy.copy(parent[step])
        parent = parent[step]
    if kind == "missing":
        del parent[steps[-1]]
    elif kind == "misspelt":
        parent[change] = parent.pop(steps[-1])
    else:
        parent[steps[-1]] = change
    return config


def complaints(config):
    """The lines of the refusal; none where the config is accepted. Any other error is a failure."""
    try:
        check(config)
    except ConfigError as error:
        head, *lines = str(error).split("\n")
        return [line.strip() for line in lines] if head == "the config cannot be used:" else [head]
    return []


LINE = re.compile(
    r"(?P<path>\S+): (missing|found .+|this key is not known)[^;]*; expected (?P<expected>.+); "
    r"(?P<fix>.+)"
)
FIX = re.compile(r"write for example (?:[\w.-]+: )?(?P<value>.+)")
ALL = list(mutations())
GROUPS = {}
for mutation in ALL:
    GROUPS.setdefault((mutation[0], mutation[1][0]), []).append(mutation)


def test_the_valid_configs_are_accepted():
    for config in shipped():
        check(config)


def examples():
    """The configs in the README and the docs, each with its file."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            found = yaml.safe_load(block)
            if isinstance(found, dict) and set(found) & set(shipped()[0]):
                yield path, found


def test_every_example_of_the_docs_is_accepted():
    found = list(examples())
    assert found[0][0] == ROOT / "README.md"
    for _, example in found:
        config = load()
        update_config(config, example)
        check(config)


@pytest.mark.long
@settings(
    derandomize=True,
    max_examples=240,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(mutation=st.sampled_from(sorted(GROUPS)).flatmap(lambda key: st.sampled_from(GROUPS[key])))
def test_a_mutation_is_refused_with_key_value_expectation_and_fix(mutation):
    judge(*mutation)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
def test_a_tenth_of_all_mutations_is_refused(first):
    for mutation in ALL[first::40]:
        judge(*mutation)


def judge(kind, steps, path, change):
    config = mutated(shipped()[1], kind, steps, change)
    lines = complaints(config)
    assert lines, "accepted"
    assert all(LINE.fullmatch(line) for line in lines), lines
    named = [line for line in lines if line.startswith((f"{path}: ", f"{path}[", f"{path}."))]
    assert named, lines
    line = named[0]
    if kind == "missing":
        assert re.search(r": missing(;| with .*;) expected", line), line
    elif kind == "misspelt":
        assert "this key is not known" in line
        assert f"did you mean {steps[-1]}?" in line or len(steps[-1]) < 3, line
    elif line.startswith(f"{path}: "):
        shown = repr(change) if len(repr(change)) <= 80 else repr(change)[:77]
        assert shown in line or str(change) in line
    fix = FIX.fullmatch(LINE.fullmatch(line)["fix"])
    if fix and line.startswith(f"{path}: "):
        # What the message says to write is taken; only how it fits to the rest may be wrong.
        healed = mutated(config, "healed", steps, yaml.safe_load(fix["value"]))
        lines = [line for line in complaints(healed) if line.startswith(f"{path}: ")]
        assert not any("write for example" in line for line in lines), lines
