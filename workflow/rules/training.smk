"""Training: any model of the config on any source of sequences.

Needs   results/sequences/{source}/{train,validation}.parquet, and hamiltonian.safetensors beside
        them for a model that takes its weights from there
Makes   results/models/{source}/{model}/seed-{seed}/manifest.json, which lists model.json,
        step-{n}.safetensors and history.parquet beside it. resume/ holds an unfinished run's state.
        Of a model that was trained elsewhere, the manifest says where its checkpoints are;
        results/series/{model}.json has the digests of their files.
"""


rule train_model:
    input:
        train=f"{SEQUENCES}/train.parquet",
        validation=f"{SEQUENCES}/validation.parquet",
        sequence_weights=lambda wildcards: models.sequence_weights(
            wildcards.source, wildcards.model
        ),
        test=lambda wildcards: models.all_splits(wildcards.source, wildcards.model),
    output:
        manifest=MODEL,
    log:
        f"{RESULTS}/logs/train_model/{{source}}/{{model}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/train_model/{{source}}.{{model}}.seed-{{seed}}.jsonl"
    wildcard_constraints:
        model=named(models.trained_models(on_cpu=False)),
    priority: jobs.urgency(MODEL, 10)
    conda:
        "../../envs/learning.yaml"
    threads: lambda wildcards: models.training_threads(wildcards.model)
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
        gpu=config["compute"]["gpus"],
    params:
        model=lambda wildcards: models.architecture(wildcards.model),
        recipe=lambda wildcards: paths.entry("models", wildcards.model)["training"],
        init_seed=lambda wildcards: paths.entry("models", wildcards.model)["init_seed"],
        stream=lambda wildcards: models.training_stream(wildcards.model),
        device=lambda wildcards: models.training_device(wildcards.model),
        processes=lambda wildcards: models.training_processes(wildcards.model),
        code=lambda wildcards: code("train_model.py", *models.training_modules(wildcards.model)),
    message:
        "Training {wildcards.model} on {wildcards.source}, seed {wildcards.seed}"
    script:
        "../scripts/train_model.py"


# Under its own name, so that a cluster profile can send it where there are no GPUs.
use rule train_model as train_model_on_cpu with:
    wildcard_constraints:
        model=named(models.trained_models(on_cpu=True)),
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),


rule adopt_weights:
    input:
        train=f"{SEQUENCES}/train.parquet",
        validation=f"{SEQUENCES}/validation.parquet",
        hamiltonian=HAMILTONIAN,
    output:
        manifest=MODEL,
    log:
        f"{RESULTS}/logs/adopt_weights/{{source}}/{{model}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/adopt_weights/{{source}}.{{model}}.seed-{{seed}}.jsonl"
    wildcard_constraints:
        model=named(models.models_with("parameters")),
    priority: jobs.urgency(MODEL, 30)  # short: figures come out sooner
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
    params:
        model=lambda wildcards: models.architecture(wildcards.model),
        code=lambda wildcards: code("adopt_weights.py", *models.model_modules(wildcards.model)),
    message:
        "Writing the conditionals of {wildcards.source} as the model {wildcards.model}"
    script:
        "../scripts/adopt_weights.py"


rule read_series:
    input:
        validation=f"{SEQUENCES}/validation.parquet",
    output:
        manifest=MODEL,
    log:
        f"{RESULTS}/logs/read_series/{{source}}/{{model}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/read_series/{{source}}.{{model}}.seed-{{seed}}.jsonl"
    wildcard_constraints:
        model=named(models.models_with("weights")),
    priority: jobs.urgency(MODEL, 10)
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
        gpu=min(1, config["compute"]["gpus"]),
    params:
        model=lambda wildcards: models.architecture(wildcards.model),
        folders=lambda wildcards: models.weight_folders(wildcards.model),
        record=lambda wildcards: f"{RESULTS}/series/{wildcards.model}.json",
        downloads=f"{RESULTS}/downloads",
        device="cpu" if config["compute"]["device"] == "cpu" else "auto",
        code=lambda wildcards: code("read_series.py", *models.model_modules(wildcards.model)),
    message:
        "Reading the checkpoints of {wildcards.model}, on text of {wildcards.source}"
    script:
        "../scripts/read_series.py"
