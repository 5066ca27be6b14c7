"""What the pipeline hands on from rule to rule: seeds, splits, documents; from text to tokens, and
from a Hamiltonian's samples or an alignment to chains, losses on them and a figure of each.
"""

import hashlib

import numpy as np
import pytest
from pipelines import ROOT, Pipeline
from pyarrow import parquet

from manybody.data import tokenizer
from manybody.data.documents import Documents
from manybody.io import tables
from manybody.io.atomic import sha256
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.measure import cards
from manybody.sampling.draws import unigram

ALIGNED = ROOT / "tests" / "data" / "planted.fasta"
OVERLAY = f"""
sources:
  # few enough colours for a short chain, and two digits, to tell numbers from letters
  spins: {{length: 8, vocabulary: 11, colours: {{gaussian: 3}}}}
  quartets:
    kind: many-body
    order: 4
    length: 6
    vocabulary: 4
    couplings: {{vectors: 200, variables: signs, probability: 0.8}}
    colours: potts
    logit_scale: 2.0
    sweeps: 20
    sequences: {{train: 300, validation: 60, test: 60}}
    seed: 0
  pairs:
    kind: cut
    source: quartets
    at: 2
    kept: marginals
    sequences: {{train: 12, validation: 12, test: 12}}
    seed: 0
  family:
    kind: alignment
    file: {ALIGNED}
    format: fasta
    alphabet: protein
    identity: 0.8
    split: {{train: 0.6, validation: 0.2, test: 0.2}}
    seed: 0
models:
  tiny: {{rank: 4, training: {{validation: 20, batch: 32}}}}
  small-bert:
    architecture: bert
    layers: 1
    heads: 2
    width: 8
    mlp: 16
    init_seed: 3
    training: &short
      objective: masked
      steps: 40
      batch: 32
      masks: 0.15
      optimizer: {{name: adamw, betas: [0.9, 0.98], weight_decay: 0.0}}
      learning_rate: 0.01
      schedule: cosine
      warmup: 5
      clip: 1.0
      checkpoints: {{logarithmic: 2, listed: []}}
      validation: 20
      precision: float32
      compile: false
      threads: 1
  pairs:
    architecture: energy
    order: 2
    init_seed: 1
    training:
      objective: masked
      masks: all
      optimizer: {{name: lbfgs, history: 5, ridge: 1.0e-2}}
      steps: 20
      restarts: 1
      validation: 20
      precision: float32
      threads: 1
  sites:
    architecture: factored
    layers: 1
    rank: null
    bias: site
    variant: exact
    init_seed: 1
    training:
      objective: masked
      masks: all
      optimizer: {{name: lbfgs, history: 5, ridge: 1.0e-2}}
      steps: 20
      restarts: 1
      validation: 20
      precision: float64
      threads: 1
clones:
  spins: &few
    source: spins
    model: tiny
    seed: 0
    step: last
    energy: raw
    gauge: none
    chain_init: test
    chains: 12
    sweeps: [1, 3]
    order: permuted
    chain_seed: 4
    precision: float32
    threads: 1
  spins-heat: {{<<: *few, energy: reference, sampler: heat-bath}}
  quartets: {{<<: *few, source: quartets, model: pairs}}
  quartets-bert: {{<<: *few, source: quartets, model: small-bert, precision: bfloat16}}
  family: {{<<: *few, source: family, model: sites}}
evaluations:
  spins: &all
    source: spins
    model: tiny
    seeds: [0]
    positions: all
    steps: all
    targets:
      own: {{clone: spins, sweep: 3}}
      original: {{initial: spins}}
  quartets:
    <<: *all
    source: quartets
    model: small-bert
    targets:
      two: {{clone: quartets, sweep: 3}}
      own: {{clone: quartets-bert, sweep: 3}}
      pairs: {{source: pairs, split: test, sequences: 12}}
      original: {{initial: quartets}}
  family:
    <<: *all
    source: family
    model: sites
    targets:
      own: {{clone: family, sweep: 3}}
      original: {{initial: family}}
figures:
  simplicity:
    fig1: {{evaluation: quartets, ladder: [two, own, pairs], control: original}}
    table1: {{clones: [family], sweep: 3, passages: [0, 1]}}
"""
CLONES = {
    "spins": ["spins", "spins-heat"],
    "quartets": ["quartets", "quartets-bert"],
    "family": ["family"],
}
SPLITS = ("train", "validation", "test")
SEEDS = (0, 3)
EVERY = [(source, clone) for source, names in CLONES.items() for clone in names]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of results of one call of snakemake."""
    targets = [f"clones/{source}/{clone}/manifest.json" for source, clone in EVERY]
    targets += [f"losses/{source}/seed-0.parquet" for source in CLONES]
    targets += ["figures/simplicity/fig1.csv", "figures/simplicity/table1.csv"]
    targets += ["cards/quartets.json", "cards/family.json"]
    targets += [f"models/spins/tiny/seed-{seed}/manifest.json" for seed in SEEDS]
    targets += [f"sequences/text/{split}.parquet" for split in SPLITS]
    pipeline = Pipeline(tmp_path_factory.mktemp("sources"), OVERLAY, targets)
    pipeline.run()
    return pipeline.results


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_are_trained_with_the_seed_of_their_file_name(results, seed):
    about = Manifest.read(results / f"models/spins/tiny/seed-{seed}/manifest.json", "model").about
    assert (about["seed"], about["init_seed"], about["stream"]) == (seed, 1, "tiny")


def test_the_tokenizer_was_trained_on_training_documents_and_made_every_split(results):
    kept = {split: Documents(results / f"corpora/tiny/{split}.parquet") for split in SPLITS}
    assert len({documents.sha256 for documents in kept.values()}) == 3
    made = results / "sequences/text/tokenizer.json"
    for split, documents in kept.items():
        about = Sequences.open(results / f"sequences/text/{split}.parquet").about
        assert about["split"] == split
        assert about["made"]["documents"]["sha256"] == documents.sha256
        assert about["made"]["tokenizer"] == sha256(made)
        assert about["made"]["trained_on"]["sha256"] == kept["train"].sha256
    again = results / "again.json"
    tokenizer.train(kept["train"].path, 300, again)
    assert again.read_bytes() == made.read_bytes()


@pytest.mark.parametrize(("source", "clone"), EVERY)
def test_chains_start_at_the_source_s_test_sequences(results, source, clone):
    manifest = Manifest.read(results / f"clones/{source}/{clone}/manifest.json", "clones")
    starts, end = (
        Sequences.open(manifest.file(name)) for name in ("starts.parquet", "sweep-3.parquet")
    )
    test = Sequences.open(results / f"sequences/{source}/test.parquet")
    assert (starts.vocabulary, starts.length) == (test.vocabulary, test.length)
    assert (end.tokens != starts.tokens).any()
    assert manifest.about["split"] == "test"
    assert np.array_equal(starts.tokens, test.tokens[manifest.about["rows"]])
    assert manifest.about["stream"] == clone


def test_an_energy_compares_with_the_source_s_own_training_tokens(results):
    train = Sequences.open(results / "sequences/spins/train.parquet")
    digest = hashlib.sha256(unigram(train.tokens, train.vocabulary).tobytes()).hexdigest()
    about = Manifest.read(results / "clones/spins/spins-heat/manifest.json", "clones").about
    assert about["reference"] == {"law": digest}
    assert about["sampler"] == "heat-bath"


@pytest.mark.parametrize(("source", "clone"), EVERY)
def test_the_trace_is_that_of_the_chains(results, source, clone):
    manifest = Manifest.read(results / f"clones/{source}/{clone}/manifest.json", "clones")
    assert manifest.about["precision"] == ("bfloat16" if clone == "quartets-bert" else "float32")
    chains = ["starts.parquet", "sweep-1.parquet", "sweep-3.parquet"]
    assert manifest.names() == ["samples.md", *chains, "trace.parquet"]
    trace = parquet.read_table(manifest.file("trace.parquet")).to_pandas()
    assert trace["sweep"].tolist() == [0, 1, 2, 3]
    starts = Sequences.open(manifest.file("starts.parquet")).tokens
    for sweep in (1, 3):
        chain = Sequences.open(manifest.file(f"sweep-{sweep}.parquet"))
        assert trace["changed"][sweep] == pytest.approx((chain.tokens != starts).mean(), abs=1e-12)
        assert chain.about["sweep"] == sweep
        so_far = trace[1 : sweep + 1]
        accepted = np.average(so_far["accepted"], weights=1 - so_far["same"])
        assert chain.about["acceptance"] == pytest.approx(accepted)
    assert trace["changed"][0] == 0
    assert 0 < trace["accepted"][3] <= 1


@pytest.mark.parametrize(("source", "clone"), EVERY)
def test_samples_are_shown_as_letters_of_the_alphabet_or_as_numbers(results, source, clone):
    manifest = Manifest.read(results / f"clones/{source}/{clone}/manifest.json", "clones")
    chain = Sequences.open(manifest.file("sweep-3.parquet")).tokens[2].tolist()
    shown = " ".join(map(str, chain))
    if source == "family":
        shown = "".join("-ACDEFGHIKLMNPQRSTVWY"[token] for token in chain)
    text = manifest.file("samples.md").read_text()
    assert f"**sweep 3**\n\n> {shown}\n" in text.partition("## Chain 2")[2]


@pytest.mark.parametrize("source", CLONES)
def test_models_are_tested_on_such_clones(results, source):
    losses = parquet.read_table(results / f"losses/{source}/seed-0.parquet").to_pandas()
    last = losses[losses["step"] == losses["step"].max()]
    others = {"two", "pairs"} if source == "quartets" else set()
    assert set(last["target"]) == {"own", "original"} | others
    assert set(last["target"].value_counts()) == {12}
    assert (last["loss_sum"] > 0).all()


def test_figures_are_drawn_of_such_clones(results):
    table = (results / "figures/simplicity/table1.csv").read_text()
    manifest = Manifest.read(results / "clones/family/family/manifest.json", "clones")
    ends = Sequences.open(manifest.file("sweep-3.parquet")).tokens
    letters = "-ACDEFGHIKLMNPQRSTVWY"
    for chain in (0, 1):
        assert "".join(letters[token] for token in ends[chain]) in table
    drawn = (results / "figures/simplicity/fig1.csv").read_text()
    assert "energy model, order 2" in drawn
    assert "BERT, any order" in drawn


def test_clones_of_figures_have_cards(results):
    quartets, family = (
        {card.name: card for card in cards.read(results / f"cards/{source}.json")}
        for source in ("quartets", "family")
    )
    assert list(quartets) == ["quartets", "quartets-bert"]
    assert list(family) == ["family"]
    losses = tables.read_losses({0: results / "losses/quartets/seed-0.parquet"})
    curves = tables.learning_curves(losses)
    last = curves[curves["step"] == curves["step"].max()].set_index("target")["loss"]
    bert = quartets["quartets-bert"]
    assert bert.states[-1].loss[0] == pytest.approx(last["own"], abs=1e-5)
    assert bert.text.loss[0] == pytest.approx(last["original"], abs=1e-5)
    assert "too few sweeps" in family["family"].why
    assert family["family"].digest == sha256(results / "clones/family/family/manifest.json")
