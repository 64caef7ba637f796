"""Several runs beside each other: what differs, by how much, where, and whether it would on other data."""
