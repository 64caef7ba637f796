"""Several runs against one truth: differences of scores, where they arise, and whether they hold on other data."""
