"""Advice: what a text is made of, what to set for it and what a run will take, before a long job.

Needs   the documents and sequences of the texts that the figures are made from
Makes   results/advice.md, which `snakemake -- advise` prints
"""


rule write_advice:
    input:
        documents=[documents(source, split) for source in advised_sources() for split in SPLITS],
        sequences=[
            f"{SEQUENCES}/{split}.parquet".format(source=source)
            for source in advised_sources()
            for split in SPLITS
        ],
        overlap=[of_text(source, "overlap.json") for source in advised_sources()],
    output:
        advice=f"{RESULTS}/advice.md",
    log:
        f"{RESULTS}/logs/write_advice.log",
    benchmark:
        f"{RESULTS}/usage/write_advice.jsonl"
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        sources=advised_sources(),
        config={
            block: config[block]
            for block in ("corpora", "sources", "models", "clones", "evaluations")
        },
        runs=advised("runs", "evaluations"),
        clones=advised("clones", "clones"),
        figures=len(figure_names()),
        code=lambda wildcards: code("write_advice.py", *ARCHITECTURES.values()),
    message:
        "Looking at the text"
    script:
        "../scripts/write_advice.py"


# Without an output: it prints each time.
rule advise:
    input:
        advice=rules.write_advice.output.advice,
    log:
        f"{RESULTS}/logs/advise.log",
    localrule: True
    conda:
        "../../envs/learning.yaml"
    message:
        "The advice in {input.advice}:"
    script:
        "../scripts/print_advice.py"
