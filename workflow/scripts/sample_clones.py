"""Draws clones of one trained model."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.data.overlap import shares
from manybody.data.tokenizer import load
from manybody.io.atomic import sha256
from manybody.io.checkpoints import checkpoint_steps, chosen_step
from manybody.io.devices import pick
from manybody.io.sequences import Sequences, Symbols
from manybody.models.stored import load_model
from manybody.sampling.draws import unigram
from manybody.sampling.metropolis import choose_initial, sample

clone, run = snakemake.params.clone, snakemake.input.model
step = chosen_step(run, clone["step"], snakemake.input.reference or None)
model = load_model(run, step, pick(snakemake.params.device))
split = "test" if clone["chain_init"] == "test" else "train"
available = Sequences.open(snakemake.input[split])
initial, rows = choose_initial(
    available.tokens, clone["chains"], clone["chain_init"], model.vocabulary, clone["chain_seed"]
)
alphabet = available.about.get("alphabet")  # the letters of an alignment
words = snakemake.input.tokenizer
overlap = snakemake.input.overlap
mu = None
if clone["energy"] == "reference":
    mu = unigram(Sequences.open(snakemake.input.train).tokens, model.vocabulary)

sample(
    model,
    initial,
    Path(snakemake.output.manifest).parent,
    energy=clone["energy"],
    gauge=clone["gauge"],
    sweeps=clone["sweeps"],
    order=clone["order"],
    seed=clone["chain_seed"],
    stream=snakemake.wildcards.clone,
    precision=clone["precision"],
    sampler=clone.get("sampler", "mh"),
    mu=mu,
    about={
        "source": clone["source"],
        "generator": {
            "model": clone["model"],
            "seed": clone["seed"],
            "step": step,
            "last": step == checkpoint_steps(run)[-1],
            "description": model.description,
            "order": model.about.order,
            "nominal": model.about.nominal,
        },
        "chain_init": clone["chain_init"],
        "split": split,
        "rows": rows,
        "sequences": available.sha256,
        "tokenizer": sha256(words) if words else None,
        "alphabet": alphabet,
        **({"overlap": shares(overlap, rows if split == "test" else None)} if overlap else {}),
        "code": snakemake.params.code,
    },
    tokenizer=load(words) if words else Symbols(alphabet),
    threads=clone["threads"],
)

job.keep()
