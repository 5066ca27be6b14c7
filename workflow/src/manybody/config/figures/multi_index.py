"""Figures of the paper on sequence multi-index models, each with the theory that it draws."""

from manybody.config.figures.base import Figure
from manybody.io.options import Block, key, refers

_KIND = "multi-index-"


class MultiIndexFig1Theory(Block):
    """What figure 1 draws."""

    state_evolution: refers("theory", f"{_KIND}state-evolution") = key(
        "Theory of kind multi-index-state-evolution."
    )
    regularised: refers("theory", f"{_KIND}state-evolution") = key("The same with a regulariser.")
    gamp: refers("theory", f"{_KIND}gamp") = key("Theory of kind multi-index-gamp.")
    thresholds: refers("theory", f"{_KIND}thresholds") = key(
        "Theory of kind multi-index-thresholds."
    )


class MultiIndexFig1(Figure):
    """Overlaps and error against alpha, and the phase diagram."""

    theory: MultiIndexFig1Theory = key("What is drawn.")


class MultiIndexFig2Theory(Block):
    """What figure 2 draws."""

    gamp: refers("theory", f"{_KIND}gamp") = key("Theory of kind multi-index-gamp.")
    sgd: refers("theory", f"{_KIND}sgd") = key("Theory of kind multi-index-sgd.")


class MultiIndexFig2(Figure):
    """Message passing and gradient descent in time."""

    theory: MultiIndexFig2Theory = key("What is drawn.")


class MultiIndexFig3Theory(Block):
    """What figure 3 draws."""

    deep: refers("theory", f"{_KIND}deep") = key("Theory of kind multi-index-deep.")
    deep_regularised: refers("theory", f"{_KIND}deep") = key(
        "The same kind with a regulariser, as the public code has one."
    )
    trec: refers("theory", f"{_KIND}trec") = key("Theory of kind multi-index-trec.")
    docstrings: refers("theory", f"{_KIND}trec") = key("The same kind with other questions.")
    untied: refers("theory", f"{_KIND}untied") = key("Theory of kind multi-index-untied.")


class MultiIndexFig3(Figure):
    """Three layers, and a classifier of questions."""

    theory: MultiIndexFig3Theory = key("What is drawn.")


class MultiIndexFig5Theory(Block):
    """What figure 5 draws."""

    fixed_overlap: refers("theory", f"{_KIND}fixed-overlap") = key(
        "Theory of kind multi-index-fixed-overlap."
    )


class MultiIndexFig5(Figure):
    """What layer 1 learns while layer 2 is held."""

    theory: MultiIndexFig5Theory = key("What is drawn.")


class MultiIndexFigures(Block):
    """Figures of the paper on sequence multi-index models, each with the theory that it draws."""

    fig1: MultiIndexFig1 = key("Overlaps and error against alpha, and the phase diagram.", None)
    fig2: MultiIndexFig2 = key("Message passing and gradient descent in time.", None)
    fig3: MultiIndexFig3 = key("Three layers, and a classifier of questions.", None)
    fig5: MultiIndexFig5 = key("What layer 1 learns while layer 2 is held.", None)
