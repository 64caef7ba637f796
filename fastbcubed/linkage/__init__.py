"""Links with scores → the tree of their merges, and from it the scores of the clusters at every threshold."""
