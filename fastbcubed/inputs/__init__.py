"""What is given to evaluate(): files, frames and arrays → columns, tables, two clusterings."""
