"""The command line: flags, output for people and machines, the demo."""
