"""Aligned rows → cells and their margins, and the way back from cells to rows."""
