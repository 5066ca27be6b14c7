"""Prices all jobs of a config, of which a dry run knows the DAG, and prints the tables."""

import os
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from snakemake import cli, workflow

from display import named
from manybody.papers import module_name
from manybody.pipeline.price import Asked, write
from manybody.pipeline.probe import Prices

arguments, out = snakemake.params.arguments, snakemake.config["results"]
began = time.process_time()
with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
    try:
        cli.main([*arguments, "--dry-run", "--forceall", "--nolock", "--", "all"])
    except SystemExit as ended:
        refused = ended.code
if refused:
    sys.exit("the dry run of all jobs failed: `snakemake -n` says why")
read = time.process_time() - began
subprocess.run([sys.executable, "-m", "snakemake", "--version"], check=True, capture_output=True)
# The script of a queued job calls Snakemake, which calls Snakemake as a step of the job.
run, start = workflow.workflow, 2 * (read + sum(os.times()[2:4]))


def drawn_by(params) -> str:
    """The module of a figure; none for other jobs."""
    return module_name(params.paper, params.figure) if "figure" in dict(params.items()) else ""


names, after = named(run)
jobs = {
    name: Asked(
        job.rule.name,
        dict(job.wildcards.items()),
        job.threads,
        job.resources.get("mem_mb", 0),
        job.resources.get("gpu", 0),
        after[name],
        job.params.get("module") or drawn_by(job.params),
        job.rule.name in run._localrules,
    )
    for job, name in names.items()
}
config, sources = run.globals["config"], run.globals["sources"]
theory_module = run.globals["models"].theory_module
sizes = {source: sources.sizes_of(source) for source in config["sources"]}
modules = {source: sources.module(source) for source in config["sources"]}
modules |= {f"theory/{name}": theory_module(name) for name in config["theory"]}
prices = Prices(config, sizes, modules, run.globals["figures"].equation_runs)
with open(snakemake.log[0], "w", buffering=1) as log, redirect_stderr(log):
    said = write(Path(out), jobs, prices, config["compute"], start)
print(said)
