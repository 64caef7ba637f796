"""The command line: flags, output as text, JSON and Markdown, and the demo."""
