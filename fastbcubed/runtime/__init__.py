"""What the work stands on: threads, memory, spill, files, progress; it knows nothing of clusterings."""
