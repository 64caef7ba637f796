"""Sweeps: links with scores → the clusters at every threshold, scored against the truth."""
