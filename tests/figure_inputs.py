"""What a figure's block asks for, of a block that may be that of any figure."""

from pydantic import TypeAdapter

from manybody.config.figures import potts, simplicity
from manybody.io.options import nearest_of

BLOCKS = (
    simplicity.SimplicityFig4,
    simplicity.SimplicityFig1,
    simplicity.SimplicityFig3,
    simplicity.Staircase,
    simplicity.Fig2Literal,
    simplicity.Headline,
    simplicity.Controls,
    simplicity.GradientFlowFigure,
    simplicity.Table1,
    simplicity.SpectrumFigure,
    simplicity.SpectrumTruth,
    potts.PottsFig2,
    potts.PottsFig3,
    potts.RecoveryFigure,
    potts.ContactsFigure,
)
ANY = TypeAdapter(nearest_of(*BLOCKS))


def needs(block: dict, config: dict) -> dict:
    return ANY.validate_python(block).inputs(config)
