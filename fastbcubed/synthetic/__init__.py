"""Synthetic clusterings by cluster-size distribution, for benchmarks and tests."""
