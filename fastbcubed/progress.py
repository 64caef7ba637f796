"""What a progress callback is given: the public path of `Progress`."""

from fastbcubed.runtime.pool import Progress

__all__ = ["Progress"]
