"""What a result has to pass: bounds, a baseline, its own rows."""
