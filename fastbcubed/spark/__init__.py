"""The Spark engine: Spark joins rows and groups them to cells, and kernels score the cells as they are streamed."""
