"""Two clusterings → aligned rows: items matched, policies, weights, coverage."""
