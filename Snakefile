"""manybody: which orders of interaction has a sequence model learned, and when?"""

import shlex
import sys
from pathlib import Path
from shutil import which

from snakemake.common.configfile import load_configfile
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version, update_config

min_version("9.12")


include: "workflow/rules/refusals.smk"


# Snakemake would say that it cannot run `conda info`, but not what to do.
if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method and not which("conda"):
    refuse(
        "--use-conda: expected the command `conda` in PATH, found none. Either leave --use-conda out, "
        "after `make env` and `. .venv/bin/activate`, which have all packages at the same versions; "
        "or install Miniforge (https://conda-forge.org/download) and open a new shell."
    )


refuse_braces()
# Snakemake writes this path into the shell command of a script as it is, spaces and all.
sys.executable = shlex.quote(sys.executable)

# Scripts import the package and the benchmarks from here: Snakemake hands its import path on to them.
sys.path[:0] = [str(Path(workflow.basedir) / "workflow" / name) for name in ("src", "")]

from manybody.config.files import in_order, problems, typed

DEFAULT = Path(workflow.basedir) / "config" / "config.yaml"
if said := problems([DEFAULT, *workflow.config_settings.configfiles]):
    refuse("\n".join(said))


configfile: DEFAULT


refuse_missing_packages()

from display import Display
from gone import watch
from manybody.pipeline.check import check, take_away

update_config(config, typed(workflow.config_settings.config_args))
config = in_order(config, load_configfile(DEFAULT))
checked = refusing(check)(config, take_away(config))
refuse_read_only(config["results"])
if workflow.is_main_process:
    watch(workflow)


report: "workflow/report/workflow.rst"


display = Display(workflow)  # of the running jobs and the time left


# Under its limit of jobs per second Snakemake looks at all that are ready each second, not only
# when one ends: a fifth of a core where 200 are ready. Nothing here starts a hundred at a time.
onstart:
    workflow.scheduler.job_rate_limiter = None
    display.start()


onerror:
    display.end()


# What was found, and what there is to look at, by the paths that a person opens.
onsuccess:
    display.end()
    from manybody.report.scorecard import found_in

    for sentence in found_in(file for job in workflow.dag.jobs for file in job.output):
        print(sentence, file=sys.stderr)
    for name in ("index.html", "scorecard.html", "figures"):
        if Path(RESULTS, name).exists():
            print(Path(RESULTS, name), file=sys.stderr)


include: "workflow/rules/common.smk"
include: "workflow/rules/sequences.smk"
include: "workflow/rules/advice.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/clones.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/inference.smk"
include: "workflow/rules/families.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/page.smk"
include: "workflow/rules/benchmarks.smk"


localrules:
    all,
    scorecard,
    simplicity,
    potts,
    multi_index,
    generators,
    clones,
    students,


rule all:
    default_target: True
    input:
        figures.files(),
        rules.write_scorecard.output,
        rules.write_page.output,
        families.pages(),


# All claims on one page.
rule scorecard:
    input:
        rules.write_scorecard.output,


# The long parts of a config's figures, so that each can be run, and stopped, on its own.
rule generators:
    input:
        sorted({paths.model_of("clones", clone) for clone in figures.clones()}),


rule clones:
    input:
        [paths.clone_path(clone) for clone in figures.clones()],


rule students:
    input:
        [paths.model_of("evaluations", *run) for run in figures.runs()],


rule simplicity:
    input:
        figures.files("simplicity"),


rule potts:
    input:
        figures.files("potts"),


rule multi_index:
    input:
        figures.files("multi-index"),
