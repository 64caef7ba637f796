"""Documents drawn as text, HTML, Markdown, JSON and pages: number formats, escaping, charts, the template."""
