"""Benchmarks of methods: test functions, recorded tables, the runner and its reports."""
