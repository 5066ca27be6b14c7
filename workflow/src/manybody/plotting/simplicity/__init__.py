"""Rende, Gerace, Laio and Goldt, A distributional simplicity bias in the learning dynamics of
transformers (arXiv 2410.19637). One module a figure, each with one function

    draw(files, block, context) -> (figure, table of what is drawn)

of the arguments that `claims.simplicity` describes, which reads them and judges the same numbers.
"""
