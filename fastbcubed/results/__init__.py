"""What an evaluation holds and shows: scores, slices, clusters, items, files, text."""
