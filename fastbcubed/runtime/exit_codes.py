"""Exit codes of the command line."""

#: A gate failed: a score, a warning or a comparison with the baseline.
FAILED_GATE = 1
#: Invalid input or usage, or out of memory or disk space.
WRONG = 2
#: A bug in the package.
FAULT = 70
#: Ctrl-C.
STOPPED = 130
#: The output pipe was closed.
READER_GONE = 141
#: SIGTERM.
TERMINATED = 143
