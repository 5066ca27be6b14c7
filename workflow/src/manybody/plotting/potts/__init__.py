"""Rende, Gerace, Laio and Goldt, Mapping of attention mechanisms to a generalized Potts model
(arXiv 2304.07235). One module a figure, each with one function

    draw(files, block, context) -> (figure, what is drawn)

files: named inputs of the rule, lists in the order of `context` (`config.figures.base.inputs`):
`theory` and `curves` (tables), `models` and `maps`. block: the figure's block in the config.
"""
