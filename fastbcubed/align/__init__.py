"""Two clusterings → aligned rows: which rows are the same item, policies, weights, coverage."""
