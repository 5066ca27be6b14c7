"""Writes down, as the interpreter of a job's script ends, where it ran and what it had loaded.

A file *.pth in an environment makes its interpreter import this when it starts.
"""

import atexit
import os
import sys


def write():
    import json
    from pathlib import Path

    script = Path(sys.argv[0])
    if script.parent.name != "scripts" or script.parent.parent.name != ".snakemake":
        return
    loaded = {
        name: str(module.__file__)
        for name, module in list(sys.modules.items())
        if "." not in name and getattr(module, "__file__", None)
    }
    # Snakemake calls a script a.py tmp*.a.py
    about = {"script": script.name.split(".")[-2], "prefix": sys.prefix, "loaded": loaded}
    out = Path(os.environ["MANYBODY_TEST_RECORD"]) / f"{script.name}.json"
    out.write_text(json.dumps(about), encoding="utf-8")


atexit.register(write)
