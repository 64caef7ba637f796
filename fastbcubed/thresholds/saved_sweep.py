"""Sweeps on disk: JSON and Parquet files, which take the place of earlier ones together."""

from __future__ import annotations

import json
from typing import Any

from fastbcubed.errors import FileFormatError
from fastbcubed.results.files.storage import as_path
from fastbcubed.results.listings.summary import as_json
from fastbcubed.runtime.staging import Staging
from fastbcubed.runtime.table_files import TableWriter
from fastbcubed.thresholds.best import Best

MANIFEST = "sweep.json"
#: Merges and true clusters that are written.
LISTED = 1000


def save_sweep(sweep: Any, directory: Any, best: Best) -> None:
    """Write a sweep, with the clusters at its best threshold; see `Sweep.save`."""
    tables = {
        "curve": sweep.curve(limit=None).to_arrow(),
        "clusters": sweep.at(best.threshold).to_table(),
        "merges": sweep.merges(limit=LISTED).to_arrow(),
        "weakest_links": sweep.weakest_links(limit=LISTED).to_arrow(),
    }
    with Staging(as_path(directory), MANIFEST) as staging:
        for name, table in tables.items():
            file = staging.path(f"{name}.parquet")
            try:
                file.touch()
                with TableWriter(file) as writer:
                    writer.add(table)
            except OSError as error:
                place = staging.directory / file.name
                raise FileFormatError(f"cannot write {place}: {error.strerror or error}") from error
        told = json.loads(as_json(sweep.to_dict(best=best)))
        files = {f"{name}.parquet": {"rows": table.num_rows} for name, table in tables.items()}
        told |= {"files": files, "staged_in": staging.name}
        staging.publish(json.dumps(told, indent=2, ensure_ascii=False), ())
