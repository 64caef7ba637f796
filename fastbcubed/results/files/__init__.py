"""Results on disk: what is written, and how it is read and checked."""
