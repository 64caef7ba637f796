"""Benchmarks of fastbcubed against other ways to do the same work; see README.md."""
