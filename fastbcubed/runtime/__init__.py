"""Infrastructure: threads, memory, spill, files, progress; independent of clusterings."""
