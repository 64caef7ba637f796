"""Inputs of evaluate(): files, frames and arrays → columns, tables, two clusterings."""
