"""Benchmarks: every claim about speed, against its baseline in one run.

The baselines are in benchmarks, beside what they are compared with. Not part of `all`:
run `snakemake --cores 1 results/benchmarks/clones.csv` on a machine with nothing else to do.
"""


localrules:
    benchmark_part,


rule benchmark_part:
    output:
        table=f"{RESULTS}/benchmarks/{{part}}.csv",
    log:
        f"{RESULTS}/logs/benchmark_part/{{part}}.log",
    wildcard_constraints:
        part="sequences|training|clones|many-body|potts|multi-index|multi-index-coverage",
    conda:
        "../../envs/learning.yaml"
    # More than any machine has, which snakemake cuts down to --cores: no other job may disturb the
    # clock. The measurement itself says how many threads it uses.
    threads: 1024
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=lambda wildcards: code(
            "benchmark_part.py", f"benchmarks.{wildcards.part.replace('-', '_')}"
        ),
    message:
        "Measuring {wildcards.part} against its baseline"
    script:
        "../scripts/benchmark_part.py"
