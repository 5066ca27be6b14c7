"""What only judges is not part of a drawing: a redraw is told by the imports of its module."""

from pathlib import Path

import pytest

from manybody.io.code_digest import SOURCES, import_closure

JUDGES = {"manybody.claims.verdicts", "manybody.claims.multi_index.gates"}
# They print the answer to claim 11.
ANSWERED = {"simplicity/fig4", "simplicity/fig4_paper", "simplicity/fig5"}
ANSWERED |= {"simplicity/headline", "simplicity/controls"}
CLAIMS = SOURCES / "manybody/claims"
FIGURES = sorted(
    str(module.relative_to(CLAIMS).with_suffix(""))
    for module in CLAIMS.glob("*/*.py")
    if "def judge(" in module.read_text(encoding="utf-8")
)


def closure(room, figure):
    script = Path(SOURCES.parent / "scripts/compute_theory.py")  # it imports neither room
    return set(import_closure(script, (f"manybody.{room}.{figure.replace('/', '.')}",), True))


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_drawn_without_what_judges_it(figure):
    assert closure("claims", figure) & JUDGES
    if figure not in ANSWERED:
        judged = JUDGES | {f"manybody.claims.{figure.replace('/', '.')}"}
        assert not closure("plotting", figure) & judged
