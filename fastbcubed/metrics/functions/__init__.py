"""The functions of `fastbcubed.metrics`: a file for each family, with an example for each score.

Most are made from a name in the registry and an example, which shows a value worked by hand; the rest
of the documentation comes from the registry.
"""
