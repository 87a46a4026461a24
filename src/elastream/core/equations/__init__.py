"""The papers' equations, one small function each; the docstring names the paper and the number.

They are written for one operator and know nothing of a pipeline: `core.demand` walks the DAG.
"""
