"""The papers' claims in a sentence each, and which rows of a figure's claims decide them.

A row decides the first statement of its figure one of whose fragments its text contains.
"""

Statements = dict[str, tuple[str, ...]]  # sentence: fragments

LEARNING: Statements = {
    "A student's losses on the clones saturate in the order of their interactions": (
        "saturates before",
        "saturates after",
    ),
    "While the lowest order is learned, the losses on all clones fall alike": ("have dropped",),
    "Later the loss on the lowest order rests or rises, those on higher orders fall": (
        "falls from step",
        "does not fall from step",
        "falls by more than",
    ),
    "The loss on original text falls to the end of training": ("the loss on original text",),
    "The generators that are compared at equal loss are equally good": ("premise",),
    "At equal loss of the generators their order sets the time": (
        "the order sets the time",
        "the same answer on a second corpus",
    ),
    "Clones from text and from noise agree": ("from unigram noise agree",),
}
NORM: Statements = {"With the norm score the same holds": ("norm score",)}

STATEMENTS: dict[str, dict[str, Statements]] = {
    "simplicity": {
        "fig1": LEARNING,
        "fig2": {
            "The lines of the energy models lie in the order of interaction": (
                "line above the",
                "fits the training set better",
            ),
            "One layer ends at the 2-body line, two layers at the 3-body line": ("n = 1", "n = 2"),
            "Three layers rest at the 2-body and 3-body lines, and end at the true one": (
                "n = 3 rests",
                "n = 3 comes",
            ),
            "The last layer moves first, the first layer last": ("moves first", "layers move"),
        },
        "fig2_seeds": {"Which seeds reach the highest order depends on the recipe": ("seeds",)},
        "fig2_literal": {"The paper's literal recipe gives the same staircase": ("",)},
        "fig3": {
            "A generator of higher order is better, and BERT is best": ("2 (fig. 3a)",),
            "The chains' scores settle": ("4 (fig. 3b)",),
            "The clones are samples of their models": ("chains (fig. 3b)",),
            "The losses on clones of 20 and of 70 sweeps are the same": ("5 (fig. 3c)",),
        },
        "fig4": {**NORM, **LEARNING},
        "fig4_paper": {**NORM, **LEARNING},
        "fig5": {**NORM, **LEARNING},
        "headline": LEARNING,
        "controls": {
            "Without a control: saturation follows the order of the generator": (
                "without control",
            ),
            "The generator's order accounts for more of the times than its quality": (
                "than the generator's loss",
            ),
            "At equal loss of the generators their order sets the time": (
                "at equal loss",
                "whatever draws the clones",
            ),
            "At equal order the better generator's clone saturates later": ("at equal order",),
            "Times do not depend on what chains start from": ("twins",),
            "Early times and late rises are signs of a low order": ("noise",),
            "Without clones: each order of interaction is learned before the next": (
                "to half its end",
            ),
        },
        "spectrum": {
            "What is above a model's order vanishes": ("is zero",),
            "Each order of interaction is learned before the next": ("to half its end",),
            "Which orders the loss needs": ("the loss of all orders",),
        },
        "spectrum_truth": {
            "The order spectrum is that of the known truth": (
                "no share above",
                "the draws give",
            ),
            "A network comes to the spectrum of the truth that it learns, a model of pairs not": (
                "above the truth",
                "less truth",
                "are others",
            ),
        },
        "truths": {
            "Where a law is known, the student ends with the loss of its exact conditionals": (
                "that of the exact conditionals",
            ),
            "Its losses on cuts of the law stop falling from low to high order": (
                "stops falling before",
            ),
            "M_k comes to half its end from low to high order": ("half its end",),
            "Cuts, clones and M_k put the orders in the same order": ("in the order of",),
            "The loss on a clone stops falling with that on the cut that it stands for": (
                "stops falling with",
            ),
        },
    },
    "potts": {
        "fig2": {
            "Encoders end above factored attention": ("excess of the encoder",),
            "Factored attention converges faster than encoders": ("converges faster",),
            "Between factored and common attention the loss rises": ("a = 0",),
        },
        "contacts": {"The pairs of highest score are contacts": ("among the best",)},
        "fig3": {
            "Theory: the loss peaks at as many samples as unknowns": ("fig. 3 left",),
            "Simulation: the test loss peaks too, and less with more decay": ("fig. 3 right",),
        },
    },
    "multi-index": {
        "fig1": {
            "State evolution and message passing are those of the public repository": (
                "public state evolution",
                "GAMP",
            ),
            "The first layer's threshold does not depend on the skip connection c": (
                "coarse run",
                "does not depend on c",
                "layer 2 jumps",
            ),
            "The thresholds are those of the public repository": ("of the public data",),
        },
        "fig2": {
            "The last layer is learned first": ("before layer 1",),
            "The times are those of the public runs": ("public",),
        },
        "fig3": {
            "Three layers: the overlaps are those of the public repository": ("public data",),
            "Three layers: the two shallow layers share a threshold": ("share a threshold",),
            "The last layer is learned before the first at every c": (
                "the last layer before",
                "layer 1 before layer 2",
            ),
            "In a classifier of questions the first layer settles first": ("fig. 3 right",),
        },
    },
}


def statement(paper: str, figure: str, claim: str) -> str:
    """The sentence that a row decides; the row's own text where none is written for it."""
    for sentence, fragments in STATEMENTS.get(paper, {}).get(figure, {}).items():
        if any(fragment in claim for fragment in fragments):
            return sentence
    return claim
