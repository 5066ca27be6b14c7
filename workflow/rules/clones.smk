"""Clones: sequences drawn from a trained model.

Needs   a model's manifest, results/sequences/{source}/{train,validation,test}.parquet and, of a text, its
        tokenizer.json and overlap.json
Makes   results/clones/{source}/{clone}/manifest.json, which lists sweep-{n}.parquet,
        starts.parquet, trace.parquet and samples.md beside it, and tempering.parquet of chains
        with several temperatures;
        results/cards/{source}.json, what is to be known of each clone of a source, n-grams too.
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


# All clones of a source in one job: each takes seconds, and twins are compared.
rule describe_clones:
    input:
        clones=lambda wildcards: [*map(clone_path, carded_clones()[wildcards.source][0])],
        runs=lambda wildcards: [*map(clone_model, carded_clones()[wildcards.source][0])],
        n_grams=lambda wildcards: [
            f"{SEQUENCES}/test.parquet".format(source=name)
            for name in carded_clones()[wildcards.source][1]
        ],
        train=f"{SEQUENCES}/train.parquet",
        test=f"{SEQUENCES}/test.parquet",
    output:
        cards=CARDS,
    log:
        f"{RESULTS}/logs/describe_clones/{{source}}.log",
    benchmark:
        f"{RESULTS}/usage/describe_clones/{{source}}.jsonl"
    wildcard_constraints:
        source=named(carded_clones()),
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
            "describe_clones.py",
            *dict.fromkeys(
                module
                for clone in carded_clones()[wildcards.source][0]
                for module in model_modules(entry("clones", clone)["model"])
            ),
        ),
    message:
        "Describing the clones of {wildcards.source}"
    script:
        "../scripts/describe_clones.py"
