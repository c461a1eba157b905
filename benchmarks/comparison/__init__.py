"""headway beside its peers, in one run: ``python -m benchmarks.comparison``."""
