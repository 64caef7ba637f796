"""What a sweep over thresholds answers: the curve, the best threshold, the merges that cost most, the clusters."""
