"""What tests ask of the versions of dependencies: what an older one cannot do is no fault of this package."""

from __future__ import annotations

from importlib.metadata import version

import pandas as pd
import pyarrow as pa
import pytest

__all__ = ["ARROW", "PANDAS", "arrow_imports_no_pandas", "rich_knows_widths"]

ARROW, PANDAS = (int(module.__version__.split(".")[0]) for module in (pa, pd))
#: For tests of what is imported.
arrow_imports_no_pandas = pytest.mark.skipif(ARROW < 26, reason="Arrow imports pandas where this does not")
#: For tests of how text is laid out.
rich_knows_widths = pytest.mark.skipif(
    tuple(map(int, version("rich").split(".")[:2])) < (14, 3), reason="rich lays columns out in another way"
)
