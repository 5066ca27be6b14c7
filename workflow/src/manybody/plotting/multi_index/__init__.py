"""Troiani, Cui, Dandi, Krzakala and Zdeborova, deep attention as a sequence multi-index model.
One module a figure, each with one function

    draw(files, block, context) -> (figure, what is drawn)

files: named inputs of the rule; `theory` are the tables of `context["theory"]`, which the block
names by their roles. block: the figure's block in the config. Numbers of sections in docstrings are
those of the specification `multi-index`.
"""
