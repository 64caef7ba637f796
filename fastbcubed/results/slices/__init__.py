"""Scores by slice: what a slice is, and how its rows are added up, in memory or block by block."""
