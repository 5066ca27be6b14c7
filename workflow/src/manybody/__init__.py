"""Which orders of interaction between tokens has a sequence model learned, and when?

The package under the `manybody` pipeline. It imports nothing of Snakemake: every function can be
called from a notebook or a plain script.
"""
