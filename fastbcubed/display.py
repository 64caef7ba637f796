def as_text(ev): return str(ev.overall)
