"""How the stages are run: the choice of engine, and each engine from the request to its answer."""
