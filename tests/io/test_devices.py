"""How a process uses memory."""

import platform

import child
import pytest

PROGRAM = """
import resource, torch
from manybody.io.devices import torch_threads

def filled(turns):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for turn in range(turns):
        parts = [torch.ones(2**19) for _ in range(4)]
        del parts
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with torch_threads(1):
    filled(10)
    print(filled(40))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_memory_of_one_step_serves_the_next():
    # Pages taken anew are tens of thousands if they were returned.
    assert int(child.run("-c", PROGRAM)) < 100
