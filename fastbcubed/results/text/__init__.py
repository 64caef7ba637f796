"""A result for people: in a terminal, in a notebook."""
