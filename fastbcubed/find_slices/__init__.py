"""Search for slices that lose more than the rest, on one half of the independent units, to test on the other."""
