"""Clusterings made up by the rules of a shape: what benchmarks, trials and tests run on."""
