"""The results of an evaluation: scores, slices, clusters, items, and their files and text."""
