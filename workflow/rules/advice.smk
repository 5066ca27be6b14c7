"""Advice: what a text is made of, what to set for it and what a run will take, before a long job.

Needs   the documents and sequences of the texts that the figures are made from
Makes   results/sequences/{source}/ngrams.json, losses of n-grams
        results/advice.md, which `snakemake -- advise` prints, with what is known of the clones and
        generators that are there; results/advised.yaml, a config file with what it suggests
"""

ADVISED = f"{RESULTS}/advised.yaml"


rule measure_ngrams:
    input:
        train=f"{SEQUENCES}/train.parquet",
        test=f"{SEQUENCES}/test.parquet",
    output:
        ngrams=f"{SEQUENCES}/ngrams.json",
    log:
        f"{RESULTS}/logs/measure_ngrams/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/measure_ngrams/{{source}}.jsonl"
    wildcard_constraints:
        source=named(sources.sources_with("ngrams.json")),
    priority: 1  # short, and asked for by the page alone
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        code=lambda wildcards: code("measure_ngrams.py"),
    message:
        "Measuring n-grams of {wildcards.source}"
    script:
        "../scripts/measure_ngrams.py"


rule write_advice:
    input:
        documents=[
            sources.documents(source, split)
            for source in figures.advised_sources()
            for split in SPLITS
        ],
        sequences=[
            paths.split_path(source, split)
            for source in figures.advised_sources()
            for split in SPLITS
        ],
        overlap=[
            sources.file_beside(source, "overlap.json") for source in figures.advised_sources()
        ],
        ngrams=[sources.file_beside(source, "ngrams.json") for source in figures.advised_sources()],
        tokenizer=[
            sources.file_beside(source, "tokenizer.json") for source in figures.advised_sources()
        ],
    output:
        advice=f"{RESULTS}/advice.md",
        # kept if the job fails, as the call may name it among its config files
        advised=update(ADVISED),
    log:
        f"{RESULTS}/logs/write_advice.log",
    benchmark:
        f"{RESULTS}/usage/write_advice.jsonl"
    priority: SEQUENCES_FIRST
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(30),
    params:
        sources=figures.advised_sources(),
        config={
            block: config[block]
            for block in ("corpora", "sources", "models", "clones", "evaluations")
        },
        runs=figures.advised_runs(),
        clones=figures.advised_clones(),
        # what the config has of it already, which no suggestion repeats
        given=(
            load_configfile(ADVISED)
            if Path(ADVISED).absolute() in workflow.config_settings.configfiles
            else {}
        ),
        recipes=sha256(ROOT / "docs" / "recipes.csv"),
        code=lambda wildcards: code(
            "write_advice.py",
            *(
                f"{package}{part}"
                for package in ARCHITECTURES.values()
                for part in ("", ".network")
            ),
        ),
    message:
        "Looking at the text"
    script:
        "../scripts/write_advice.py"


# Without an output: it prints each time, of clones and generators what is there.
rule advise:
    input:
        advice=rules.write_advice.output.advice,
        ngrams=figures.counted_sources(),
    log:
        f"{RESULTS}/logs/advise.log",
    localrule: True
    conda:
        "../../envs/learning.yaml"
    params:
        # config files are named from where the call is made, results from --directory
        command=lambda wildcards: command(
            sys.argv[1:],
            str(Path(ADVISED).absolute()) if workflow.overwrite_workdir else ADVISED,
            "advise",
        ),
        clones=[paths.clone_path(clone) for clone in figures.clones()],
        losses=figures.tested_generators(),
    message:
        "The advice in {input.advice}:"
    script:
        "../scripts/print_advice.py"


# Without an output too: it probes this machine each time.
rule price:
    log:
        f"{RESULTS}/logs/price.log",
    localrule: True
    conda:
        "../../envs/learning.yaml"
    params:
        arguments=[word for word in sys.argv[1:] if word not in ("price", "--")],
    message:
        "What {RESULTS} costs, by probes of seconds"
    script:
        "../scripts/price.py"
