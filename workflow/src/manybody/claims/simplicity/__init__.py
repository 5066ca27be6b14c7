"""Claims of Rende, Gerace, Laio and Goldt, A distributional simplicity bias in the learning
dynamics of transformers (arXiv 2410.19637). One module a figure, each with one function

    judge(files, block, context) -> table of claims (`verdicts.table`)

files: named inputs of the rule, lists in the order of `context` (`config.figures.base.inputs`):
`losses` and `runs` (manifests) for `context["runs"]`, `clones` (manifests) for `context["clones"]`,
and so on.
block: the figure's block in the config. What a figure reads to draw and to judge is read here.
"""
