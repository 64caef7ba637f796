"""The stages of an evaluation block by block, for the disk engine: rows that do not all fit in memory.

pairs → aligner (item_join) → counting → row_blocks → slice_sums, item_files
"""
