"""Rendering of documents as text, HTML, Markdown and JSON: number formats, escaping, charts and the page template."""
