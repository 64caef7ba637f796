"""Slices that lose more than the rest, found on one half of the independent units and tested on the other."""
