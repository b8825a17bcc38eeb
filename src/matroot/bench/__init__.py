"""Benchmarks: the suites of ``matroot bench``, the programs beside them, and the report of their results."""
