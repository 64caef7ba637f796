"""The Spark engine: Spark joins and groups rows and cells, the kernels score the cells that stream past."""
