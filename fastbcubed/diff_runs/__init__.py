"""Changes from a baseline to an experiment, and how many of them a truth confirms."""
