"""Benchmarks of fastbcubed and of other ways to do the same work; see README.md."""
