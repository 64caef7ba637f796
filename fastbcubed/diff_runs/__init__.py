"""What an experiment does to a baseline, and whether a truth approves of it."""
