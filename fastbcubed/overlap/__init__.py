"""Cells where items may be in several clusters: items with the same clusters on both sides form one cell."""
