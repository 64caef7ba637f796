"""Infrastructure that does not depend on clusterings: threads, memory, spill, files, progress."""
