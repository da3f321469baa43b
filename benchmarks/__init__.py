"""Benchmark scripts; `python benchmarks/run.py` lists and runs them, README.md describes them."""
