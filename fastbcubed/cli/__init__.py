"""The command line: flags, output for people and for machines, and the demo."""
