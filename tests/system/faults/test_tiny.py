"""The tiny pipeline is tiny, and has every kind of job but those that are named here."""

import re

from pipeline import JOBS, Pipeline

# These make nothing themselves.
TARGETS = {"all", "scorecard", "simplicity", "potts", "multi_index"}
TARGETS |= {"generators", "clones", "students"}
# The smoke pipeline runs all of these but the last.
LEFT_OUT = {
    "train_model": "is train_model_on_cpu where the config asks for no GPU",
    "adopt_weights": "writes one checkpoint and a manifest, by what writes those of a training",
    "sample_many_body": "writes splits and a Hamiltonian, as sample_potts does",
    "read_alignment": "writes splits, as sample_potts does, from one file that is read at once",
    "extract_maps": "writes one table from a run's checkpoints, as evaluate_model does",
    "measure_displacements": "writes one table from runs' checkpoints, as evaluate_model does",
    "evaluate_equations": "writes one table from runs' checkpoints, as evaluate_model does",
    "score_contacts": "writes one table from a run's last checkpoint, as evaluate_model does",
    "write_scorecard": "writes two small files from tables, as a figure is",
    "write_figure_scorecard": "writes one small file from one table, as a figure is",
    "judge_gates": "writes one small file from tables, as a figure is",
    "install_peers": "calls pip, for benchmarks only",
    "benchmark_part": "measures times, which are never the same twice",
}


def test_the_tiny_pipeline_is_tiny(whole):
    assert f"{JOBS} of {JOBS} steps (100%) done" in whole.output
    assert whole.leftovers() == []


def test_every_kind_of_job_is_in_the_tiny_pipeline_or_is_named(whole, folder):
    ran = set(re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", whole.output, re.MULTILINE))
    listing = Pipeline(folder).listed()
    # A figure is drawn and its claims are judged; one of each stands for all.
    each = re.compile(r"plot_|judge_(simplicity|potts|multi_index)_")
    made, figures = (set(filter(each.match, rules)) for rules in (ran, listing))
    assert {rule.partition("_")[0] for rule in made} == {"plot", "judge"}
    assert len(made) == 2
    assert listing - figures - TARGETS - ran == LEFT_OUT.keys()
    assert ran <= listing - TARGETS
