"""The results of an evaluation: scores, slices, clusters, items, files, text."""
