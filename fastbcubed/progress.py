"""What a progress callback is given: the public path of `Progress`."""

from fastbcubed.runtime.threads import Progress

__all__ = ["Progress"]
