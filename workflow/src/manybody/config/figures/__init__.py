"""The block `figures`: what each figure draws, in one module a paper.

A figure's block declares its inputs, name by name: `Figure.inputs`.
"""
