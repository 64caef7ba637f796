"""A gate for work that holds memory: as much at once as fits, and what is too large alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Lets work in as long as all that is inside holds no more than so many bytes; one is always let in.

    Parameters
    ----------
    most : int
        Bytes.

    Examples
    --------
    >>> gate = Gate(10)
    >>> with gate.holding(99):
    ...     "alone"
    'alone'
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._changed = threading.Condition()

    @contextmanager
    def holding(self, n_bytes: int) -> Iterator[None]:
        """Wait until there is room for these bytes, or nobody else is inside who holds any."""
        if not n_bytes:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + n_bytes <= self._most)
            self._held += n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._held -= n_bytes
                self._changed.notify_all()
