"""Where the work runs: a thread pool, and the engines that map kernels over partitions with it."""
