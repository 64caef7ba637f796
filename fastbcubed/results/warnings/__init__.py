"""What a reader of a result should know: one function for each code."""
