"""Engines: each turns a request for an evaluation into its answer."""
