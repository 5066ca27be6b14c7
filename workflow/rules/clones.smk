"""Clones: sequences drawn from a trained model.

Needs   a model's manifest, results/sequences/{source}/{train,test}.parquet and, of a text, its
        tokenizer.json and overlap.json
Makes   results/clones/{source}/{clone}/manifest.json, which lists sweep-{n}.parquet,
        starts.parquet, trace.parquet and samples.md beside it;
        results/cards/{source}.json, what is to be known of each clone of a source
"""


rule sample_clones:
    input:
        model=lambda wildcards: paths.model_of("clones", wildcards.clone),
        reference=lambda wildcards: paths.clone_reference(wildcards.clone),
        train=f"{SEQUENCES}/train.parquet",
        test=f"{SEQUENCES}/test.parquet",
        tokenizer=lambda wildcards: sources.file_beside(wildcards.source, "tokenizer.json"),
        overlap=lambda wildcards: sources.file_beside(wildcards.source, "overlap.json"),
    output:
        manifest=CLONE,
    log:
        f"{RESULTS}/logs/sample_clones/{{source}}/{{clone}}.log",
    benchmark:
        f"{RESULTS}/usage/sample_clones/{{source}}.{{clone}}.jsonl"
    priority: jobs.urgency(CLONE, 20)
    conda:
        "../../envs/learning.yaml"
    threads: lambda wildcards: paths.entry("clones", wildcards.clone)["threads"]
    resources:
        mem_mb=growing(lambda wildcards: models.clone_megabytes(wildcards.clone)),
        runtime=growing(60),
        gpu=min(1, config["compute"]["gpus"]),
    params:
        clone=lambda wildcards: paths.entry("clones", wildcards.clone),
        device=config["compute"]["device"],
        code=lambda wildcards: code("sample_clones.py", *models.clone_modules(wildcards.clone)),
    message:
        "Sampling {wildcards.clone} of {wildcards.source}"
    script:
        "../scripts/sample_clones.py"


# All clones of a source in one job: each takes seconds, and paired chains are compared.
rule describe_clones:
    input:
        clones=lambda wildcards: [*map(paths.clone_path, figures.carded[wildcards.source])],
        runs=lambda wildcards: [
            paths.model_of("clones", clone) for clone in figures.carded[wildcards.source]
        ],
        train=lambda wildcards: paths.split_path(wildcards.source, "train"),
        test=lambda wildcards: paths.split_path(wildcards.source, "test"),
    output:
        cards=CARDS,
    log:
        f"{RESULTS}/logs/describe_clones/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/describe_clones/{{source}}.jsonl"
    wildcard_constraints:
        source=named(figures.carded),
    priority: 1  # short, and asked for by the page alone
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
        gpu=min(1, config["compute"]["gpus"]),
    params:
        # on a cluster, a CPU where training has a GPU
        device="cpu" if config["compute"]["device"] == "cpu" else "auto",
        code=lambda wildcards: code(
            "describe_clones.py", *models.clone_modules(*figures.carded[wildcards.source])
        ),
    message:
        "Describing the clones of {wildcards.source}"
    script:
        "../scripts/describe_clones.py"
