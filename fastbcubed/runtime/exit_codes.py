"""Exit codes of the command line."""

#: A gate failed: a score, a warning or a comparison with the baseline.
FAILED_GATE = 1
#: Invalid input or use, or no memory or disk left.
WRONG = 2
#: An error of the package itself.
FAULT = 70
#: Ctrl-C.
STOPPED = 130
#: The output pipe is closed.
READER_GONE = 141
#: SIGTERM.
TERMINATED = 143
