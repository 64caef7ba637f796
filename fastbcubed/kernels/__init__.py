"""All Numba code: plain loops over valid, contiguous arrays, which check and convert nothing."""
