"""The table of rivals.

Each library gets rows in memory in the form that is best for it, and this conversion is not timed; reading
Parquet files is. Libraries are imported when used, because each runs in a separate process.
"""

from __future__ import annotations

from benchmarks import (
    duckdb_forms,
    fastbcubed_forms,
    numpy_forms,
    package_forms,
    pandas_forms,
    polars_forms,
    sklearn_forms,
)
from benchmarks.datasets import Layout
from benchmarks.fastbcubed_forms import REFERENCE
from benchmarks.forms import Form

__all__ = ["FORMS", "REFERENCE", "find_forms"]

FORMS: tuple[Form, ...] = (  # the best form of each rival and layout comes first
    *fastbcubed_forms.FORMS,
    *polars_forms.FORMS,
    *duckdb_forms.FORMS,
    *pandas_forms.FORMS,
    *numpy_forms.FORMS,
    *sklearn_forms.FORMS,
    *package_forms.FORMS,
)


def find_forms(names: list[str], layout: Layout = "arrays") -> list[Form]:
    """Return the forms of a layout by names `rival` (its first, best form), `rival/form` or `rival/all`.

    A name that exists only for other layouts is ignored, and an unknown name is an error.
    """
    found: list[Form] = []
    for name in names:
        rival, _, wanted = name.partition("/")
        matches = [form for form in FORMS if form.rival == rival and wanted in ("", "all", form.name)]
        if not matches:
            known = ", ".join(dict.fromkeys(form.key for form in FORMS))
            raise ValueError(f"no rival is called {name!r}; known are {known}")
        here = [form for form in matches if form.reads == layout]
        found += here if wanted else here[:1]
    return found
