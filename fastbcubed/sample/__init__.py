"""Scores from samples: of complete true clusters, and of pairs of items that people judge."""
