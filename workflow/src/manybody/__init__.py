"""Which orders of interaction between tokens has a sequence model learned, and when?

The package under the `manybody` pipeline. It imports nothing of Snakemake: every function can be
called from a notebook or a plain script.

Docstrings cite the specifications in docs/science: "(potts, section 2)" is section 2 of
docs/science/potts.md; many-body, nlp-clones, controls and multi-index are the other pages. A bare
"section 5" of a module about multi-index models is that of docs/science/multi-index.md.
"""
