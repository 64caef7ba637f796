"""The page of a result: its content as plain data, charts of that, and one HTML file for people without Python."""
