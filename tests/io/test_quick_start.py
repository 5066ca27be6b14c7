"""What jobs that draw and judge import: they are many and short."""

import os
import subprocess
import sys

import pytest

from manybody.io.quick_start import without_modules

IMPORTS = """
import importlib, pkgutil, sys, manybody.{room} as room
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    # identities compute theory, and cards measure clones
    if not {{"identities", "cards"}} & set(module.name.split(".")):
        importlib.import_module(module.name)
heavy = {{"torch", "transformers", "numba", "scipy.stats", "matplotlib"}}
print(*sorted(heavy & sys.modules.keys()))
"""


@pytest.mark.parametrize(("room", "heavy"), [("plotting", ["matplotlib"]), ("claims", [])])
def test_figures_and_claims_import_nothing_heavy(room, heavy):
    command = [sys.executable, "-c", IMPORTS.format(room=room)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.split() == heavy


def test_a_module_is_missing_in_the_block_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with without_modules("this", "json"), pytest.raises(ImportError):
        import this  # noqa: F401
    assert "this" not in sys.modules
    assert sys.modules["json"] is not None
