"""Streaming DataFrames at both ends of a pipeline: they feed sources, and read outputs."""
