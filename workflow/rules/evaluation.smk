"""Evaluation: every checkpoint of a run, on a list of sequence sets or by how far it has moved.

Needs   the run's manifest and the sets: clones, the sequences they started from, a split
Makes   results/losses/{evaluation}/seed-{seed}.parquet, one row a target, step and sequence
        results/spectra/{spectrum}/seed-{seed}.parquet, one row a step, quantity and order; the
        draws of an unfinished job are in .seed-{seed}.parts/ beside it
        results/displacements/{source}/{model}.parquet, one row a seed, step and layer
        results/clocks/{source}/{model}/seed-{seed}.parquet, what a student of a code law lacks of
        each of its terms, one row a step and term
        results/truths/{evaluation}.parquet, the loss of the source's own conditionals on the sets, one
        row a target and sequence
        results/equations/{paper}/{figure}.parquet, one row a run of the figure and sequence: the
        loss by the equations of one-layer models
"""


rule evaluate_model:
    input:
        model=lambda wildcards: paths.model_of("evaluations", wildcards.evaluation, wildcards.seed),
        targets=lambda wildcards: paths.evaluated_targets(wildcards.evaluation),
    output:
        losses=LOSSES,
    log:
        f"{RESULTS}/logs/evaluate_model/{{evaluation}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/evaluate_model/{{evaluation}}.seed-{{seed}}.jsonl"
    priority: jobs.urgency(LOSSES, 25)
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
        gpu=min(1, config["compute"]["gpus"]),
    params:
        evaluation=lambda wildcards: paths.of_one_run("evaluations", wildcards.evaluation),
        # on a cluster, a CPU where training has a GPU
        device="cpu" if config["compute"]["device"] == "cpu" else "auto",
        code=lambda wildcards: code(
            "evaluate_model.py",
            *models.model_modules(paths.entry("evaluations", wildcards.evaluation)["model"]),
        ),
    message:
        "Evaluating {wildcards.evaluation}, seed {wildcards.seed}"
    script:
        "../scripts/evaluate_model.py"


rule evaluate_truth:
    input:
        truth=lambda wildcards: sources.true_conditionals(wildcards.evaluation)[0],
        targets=lambda wildcards: paths.evaluated_targets(wildcards.evaluation),
    output:
        losses=TRUTH,
    log:
        f"{RESULTS}/logs/evaluate_truth/{{evaluation}}.log",
    benchmark:
        f"{RESULTS}/usage/evaluate_truth/{{evaluation}}.jsonl"
    wildcard_constraints:
        evaluation=named(sources.evaluations_with_truth()),
    priority: jobs.urgency(TRUTH, 30)
    conda:
        "../../envs/numerics.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        targets=lambda wildcards: paths.entry("evaluations", wildcards.evaluation)["targets"],
        module=lambda wildcards: sources.true_conditionals(wildcards.evaluation)[1],
        code=lambda wildcards: code(
            "evaluate_truth.py", sources.true_conditionals(wildcards.evaluation)[1]
        ),
    message:
        "Losses of the true conditionals on the sets of {wildcards.evaluation}"
    script:
        "../scripts/evaluate_truth.py"


rule measure_spectrum:
    input:
        model=lambda wildcards: paths.model_of("spectra", wildcards.spectrum, wildcards.seed),
        test=lambda wildcards: paths.split_of("spectra", wildcards.spectrum, "test"),
        words=lambda wildcards: sources.words_of(wildcards.spectrum),
    output:
        spectra=SPECTRUM,
    log:
        f"{RESULTS}/logs/measure_spectrum/{{spectrum}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/measure_spectrum/{{spectrum}}.seed-{{seed}}.jsonl"
    priority: jobs.urgency(SPECTRUM, 25)
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
        gpu=min(1, config["compute"]["gpus"]),
    params:
        entry=lambda wildcards: paths.of_one_run("spectra", wildcards.spectrum),
        device="cpu" if config["compute"]["device"] == "cpu" else "auto",
        code=lambda wildcards: code(
            "measure_spectrum.py",
            *models.model_modules(paths.entry("spectra", wildcards.spectrum)["model"]),
        ),
    message:
        "Measuring the orders of {wildcards.spectrum}, seed {wildcards.seed}"
    script:
        "../scripts/measure_spectrum.py"


rule measure_clock:
    input:
        model=MODEL,
        test=f"{SEQUENCES}/test.parquet",
    output:
        clock=CLOCK,
    log:
        f"{RESULTS}/logs/measure_clock/{{source}}/{{model}}/seed-{{seed}}.log",
    benchmark:
        f"{RESULTS}/usage/measure_clock/{{source}}.{{model}}.seed-{{seed}}.jsonl"
    wildcard_constraints:
        source=named(
            [name for name in config["sources"] if sources.module(name) == "manybody.data.code"]
        ),
    priority: jobs.urgency(CLOCK, 25)
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
    params:
        code=lambda wildcards: code("measure_clock.py", *models.model_modules(wildcards.model)),
    message:
        "Measuring the terms that {wildcards.model} has of {wildcards.source}, seed {wildcards.seed}"
    script:
        "../scripts/measure_clock.py"


# All seeds in one job, which takes no longer than to start: a run is read in a tenth of a second.
rule measure_displacements:
    input:
        models=lambda wildcards: figures.followed_runs(wildcards.source, wildcards.model),
    output:
        displacements=DISPLACEMENTS,
    log:
        f"{RESULTS}/logs/measure_displacements/{{source}}/{{model}}.log",
    priority: jobs.urgency(DISPLACEMENTS, 30)
    localrule: True
    conda:
        "../../envs/figures.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=lambda wildcards: code(
            "measure_displacements.py", *models.model_modules(wildcards.model)
        ),
    message:
        "Measuring how far the layers of {wildcards.model} on {wildcards.source} have moved"
    script:
        "../scripts/measure_displacements.py"


# All runs of a figure in one job: each takes a second.
rule evaluate_equations:
    input:
        unpack(lambda wildcards: figures.equation_inputs(wildcards.paper, wildcards.figure)),
    output:
        losses=EQUATIONS,
    log:
        f"{RESULTS}/logs/evaluate_equations/{{paper}}.{{figure}}.log",
    benchmark:
        f"{RESULTS}/usage/evaluate_equations/{{paper}}.{{figure}}.jsonl"
    priority: jobs.urgency(EQUATIONS, 30)
    conda:
        "../../envs/learning.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        code=lambda wildcards: code(
            "evaluate_equations.py",
            *(
                f"{package}{part}"
                for package in ARCHITECTURES.values()
                for part in ("", ".network")
            ),
        ),
    message:
        "Losses of the runs of {wildcards.paper} {wildcards.figure} by their equations"
    script:
        "../scripts/evaluate_equations.py"
