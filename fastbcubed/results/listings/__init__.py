"""What a result lists: clusters, cells, outcomes, repairs, pairs of sources; and the table that all of it comes in."""
