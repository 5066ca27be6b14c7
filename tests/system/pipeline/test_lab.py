"""config/lab.yaml: a figure on files of one's own, and the memory that its jobs ask for."""

import re

from configs import CONFIG
from pipelines import Pipeline


def test_figure_1_on_files_of_ones_own(tmp_path):
    text = tmp_path / "mine.tokens"
    text.write_text(" = A title = \n\n some words .\n" * 10)
    pipeline = Pipeline(tmp_path, (CONFIG / "lab-wikitext.yaml").read_text(), scale="lab")
    own = f"corpora: {{wikitext-slice: {{files: [{text}]}}}}"
    jobs = pipeline.counted(overlay=own, targets=["all"])
    made = set(re.findall(r"^Job \d+: Making (.*)$", pipeline.output, re.MULTILINE))
    assert made == {"simplicity fig1"}
    long = {"train_model": 9, "sample_clones": 4, "evaluate_model": 5, "make_figure": 1}
    assert jobs.items() >= long.items()
