"""Theory: what is computed without data: flows, curves, identities.

Needs   an entry `theory` of the config, and the files that it names
Makes   results/theory/{theory}.parquet, a long table quantity, series, seed, x, y, y_err
"""


rule compute_theory:
    input:
        files=lambda wildcards: sources.theory_files(wildcards.theory),
    output:
        table=THEORY,
    log:
        f"{RESULTS}/logs/compute_theory/{{theory}}.log",
    benchmark:
        f"{RESULTS}/usage/compute_theory/{{theory}}.jsonl"
    priority: jobs.urgency(THEORY, 10)
    conda:
        "../../envs/learning.yaml"
    threads: lambda wildcards: paths.entry("theory", wildcards.theory).get("threads", 1)
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        given=lambda wildcards: digests(sources.theory_files(wildcards.theory)),
        entry=lambda wildcards: paths.entry("theory", wildcards.theory),
        module=lambda wildcards: models.theory_module(wildcards.theory),
        code=lambda wildcards: code("compute_theory.py", models.theory_module(wildcards.theory)),
    message:
        "Computing {wildcards.theory}"
    script:
        "../scripts/compute_theory.py"
