"""Modules can be hidden from a library that can do without."""

import sys

import pytest

from manybody.io.quick_start import without_modules


def test_a_module_is_missing_in_the_block_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with without_modules("this", "json"), pytest.raises(ImportError):
        import this  # noqa: F401
    assert "this" not in sys.modules
    assert sys.modules["json"] is not None
