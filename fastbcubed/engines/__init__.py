"""How the stages are run: which engine, and each engine from the request to its answer."""
