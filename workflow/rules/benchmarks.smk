"""Benchmarks: every claim about speed, against its baseline in one run.

The baselines are in workflow/benchmarks, beside what they are compared with; packages that only
they need are listed in envs/benchmarks.txt and envs/shapiq.txt. Not part of `all`: run
`snakemake --cores 1 results/benchmarks/clones.csv` on a machine with nothing else to do.
"""

PEERS = f"{RESULTS}/benchmarks/peers-{{peers}}"
TOLD = {  # what a measurement is told: files, and the folder of packages for a process of its own
    "recipes": [paths.split_path("docs", split) for split in SPLITS[:2]],
    "spectrum": [f"{RESULTS}/corpora/pydocs/train.parquet"],
}
TOLD["interactions"] = [*TOLD["recipes"], PEERS.format(peers="shapiq")]


rule install_peers:
    input:
        pins=ROOT / "envs" / "{peers}.txt",
    output:
        folder=directory(PEERS),
    log:
        f"{RESULTS}/logs/install_peers/{{peers}}.log",
    wildcard_constraints:
        peers="benchmarks|shapiq",
    localrule: True
    conda:
        "../../envs/learning.yaml"
    message:
        "Installing what the benchmarks compare with, of envs/{wildcards.peers}.txt"
    shell:
        "python -m pip install --no-deps --require-hashes --only-binary :all:"
        " --target {output.folder} --requirement {input.pins} > {log} 2>&1"


rule benchmark_part:
    input:
        peers=lambda wildcards: [
            PEERS.format(peers="benchmarks") for part in [wildcards.part] if part == "potts"
        ],
        told=lambda wildcards: TOLD.get(wildcards.part, []),
    output:
        table=f"{RESULTS}/benchmarks/{{part}}.csv",
    log:
        f"{RESULTS}/logs/benchmark_part/{{part}}.log",
    wildcard_constraints:
        part="sequences|training|clones|energies|many-body|potts|multi-index|multi-index-coverage|"
        "recipes|spectrum|interactions|families",
    localrule: True
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
