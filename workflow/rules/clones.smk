"""Clones: sequences drawn from a trained model.

Needs   a model's manifest, results/sequences/{source}/{train,validation,test}.parquet and, of a text, its
        tokenizer.json and overlap.json
Makes   results/clones/{source}/{clone}/manifest.json, which lists sweep-{n}.parquet,
        starts.parquet, trace.parquet and samples.md beside it, and tempering.parquet of chains
        with several temperatures.
"""


rule sample_clones:
    input:
        model=lambda wildcards: clone_model(wildcards.clone),
        reference=lambda wildcards: clone_reference(wildcards.clone),
        train=f"{SEQUENCES}/train.parquet",
        validation=f"{SEQUENCES}/validation.parquet",
        test=f"{SEQUENCES}/test.parquet",
        tokenizer=lambda wildcards: of_text(wildcards.source, "tokenizer.json"),
        overlap=lambda wildcards: of_text(wildcards.source, "overlap.json"),
    output:
        manifest=CLONE,
    log:
        f"{RESULTS}/logs/sample_clones/{{source}}/{{clone}}.log",
    benchmark:
        f"{RESULTS}/usage/sample_clones/{{source}}.{{clone}}.jsonl"
    priority: urgency(CLONE, 20)
    conda:
        "../../envs/learning.yaml"
    threads: lambda wildcards: entry("clones", wildcards.clone)["threads"]
    resources:
        mem_mb=growing(lambda wildcards: clone_megabytes(wildcards.clone)),
        runtime=growing(60),
        gpu=min(1, config["compute"]["gpus"]),
    params:
        clone=lambda wildcards: entry("clones", wildcards.clone),
        device=config["compute"]["device"],
        code=lambda wildcards: code(
            "sample_clones.py", *model_modules(entry("clones", wildcards.clone)["model"])
        ),
    message:
        "Sampling {wildcards.clone} of {wildcards.source}"
    script:
        "../scripts/sample_clones.py"
