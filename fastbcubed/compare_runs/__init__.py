"""Several runs against one truth: what differs, by how much, where, and whether it would on other data."""
