"""Inputs of `evaluate`: files, frames and arrays are read as columns, tables and two clusterings."""
