"""Scores by name: what `Evaluation.overall` and subsets hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastbcubed.errors import MetricError
from fastbcubed.metrics.registry import computed_as
from fastbcubed.runtime.completion import documented


class Scores(Mapping[str, float]):
    """Scores by name, also as attributes; one that goes by several names has them all."""

    def __init__(self, values: Mapping[str, float], missing: Mapping[str, str] | None = None) -> None:
        self._values = dict(values)
        self._missing = dict(missing or {})  #: why there is no value, by name

    def __getitem__(self, name: str) -> float:
        found = self.named(name)
        if found is None:
            if name in self._missing or computed_as(name, self._missing):
                raise MetricError(self._missing[computed_as(name, self._missing) or name])
            there = f"there are {', '.join(self._values)}" if self._values else "there is none"
            raise MetricError(
                f"{name!r} was not computed; {there}. Name it in metrics=, or ask for it with .metric(name)"
            )
        return self._values[found]

    def __getattr__(self, name: str) -> float:
        found = None if name.startswith("_") else self.named(name)
        if found is None:
            raise AttributeError(name)
        return self._values[found]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a score, and `default` if it was not computed."""
        found = self.named(name)
        return default if found is None else self._values[found]

    def named(self, name: str) -> str | None:
        """Return under which name a score was computed that also goes by this one; None if it was not."""
        return name if name in self._values else computed_as(name, self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return documented(self, self._values)

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{name}={value:.6g}' for name, value in self.items())})"
