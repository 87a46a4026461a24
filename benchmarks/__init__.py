"""Benchmarks: every figure beside its baseline, measured in the same run."""
