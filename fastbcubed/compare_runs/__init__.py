"""Several runs against one truth: score differences, where they arise, and whether they hold on other data."""
