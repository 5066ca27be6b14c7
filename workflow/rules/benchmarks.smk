"""Benchmarks: every claim about speed, against its baseline in one run.

The baselines are in manybody.benchmarks, beside what they are compared with. Not part of `all`:
run `snakemake --cores 1 results/benchmarks/clones.csv` on a machine with nothing else to do.
"""


rule benchmark_part:
    output:
        table=f"{RESULTS}/benchmarks/{{part}}.csv",
    log:
        f"{RESULTS}/logs/benchmark_part/{{part}}.log",
    wildcard_constraints:
        part="sequences|training|clones",
    conda:
        "../../envs/learning.yaml"
    # The whole machine, so that no other job disturbs the clock; the measurement uses one thread.
    threads: workflow.cores or 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=lambda wildcards: code("benchmark_part.py", f"benchmarks.{wildcards.part}"),
    message:
        "Measuring {wildcards.part} against its baseline"
    script:
        "../scripts/benchmark_part.py"
