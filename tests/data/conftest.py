"""A fixture that tests of sources share."""

import pytest

from manybody.data import potts


@pytest.fixture
def few(monkeypatch):
    """Fewer chains for the search of a Potts source's temperature, and for its check."""
    for name, chains in dict(SEARCHED=500, REFINED=1500, CHECKED=4000).items():
        monkeypatch.setattr(potts, name, chains)
