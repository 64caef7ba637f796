"""What is given to evaluate() → two clusterings, each an item and a cluster per row, whole or block by block."""
