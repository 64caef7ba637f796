"""The items behind a result: in memory, of overlapping clusterings, or in a file."""
