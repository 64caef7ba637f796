"""Engines: each from the request to its answer."""
