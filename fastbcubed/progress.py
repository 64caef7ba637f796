"""The argument of a progress callback: the public path of `Progress`."""

from fastbcubed.runtime.threads import Progress

__all__ = ["Progress"]
