"""Scores estimated from samples of complete true clusters, and from samples of pairs of items that people judge."""
