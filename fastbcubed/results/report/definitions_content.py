"""What a page says of how its figures came about: formulas, policies, what others would change, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from fastbcubed.results.estimates import Estimated
from fastbcubed.results.report.shortening import few_entries
from fastbcubed.results.text.display import REPEATED, coverage, definition
from fastbcubed.results.text.wording import count, percent, score
from fastbcubed.results.warnings.of_coverage import if_alone

#: Arguments that may be data; and those that the command line has under another name.
DATA = ("attributes", "table", "weight")
FLAGS = {"metrics": "metric", "slices": "slice"}
#: What sides are called that are in no file.
UNNAMED = {"truth": "the truth", "prediction": "the prediction"}


def definitions_content(ev: Estimated) -> dict[str, Any]:
    """Return the scores with their formulas, what the means are over, and what was done with unmatched items."""
    scores = [
        {"score": m.name, "definition": m.definition, "source": m.source, "best": m.best,
         "value": ev.overall[m.name]}
        for m in ev.metrics
        if m.name in ev.overall and REPEATED.get(m.name) not in ev.overall
    ]  # fmt: skip
    not_computed = [{"score": name, "message": reason} for name, reason in list(ev.not_computed.items())[:50]]
    return {
        "rows": scores, "n": len(scores), "text": definition(ev), "lines": coverage(ev), "policies": ev.definition,
        "otherwise": {"lines": list(_otherwise(ev))}, "not_computed": not_computed,
    }  # fmt: skip


def _otherwise(ev: Estimated) -> Iterator[str]:
    """Yield what the scores would be under other policies, as far as that is known."""
    found = ev.coverage
    if found.n_truth_only and ev.policies.truth == "drop" and ev._change_if_alone is not None:
        figures = if_alone(ev)
        if figures["f1_if_alone"] == figures["f1_if_alone"]:
            yield (
                f'With unmatched={{"truth": "singleton"}}, the {count(found.n_truth_only)} items that only the truth '
                f"has would be alone in the prediction: {'' if figures['exact'] else 'about '}precision "
                f"{score(figures['precision_if_alone'])}, recall {score(figures['recall_if_alone'])}, F1 "
                f"{score(figures['f1_if_alone'])}."
            )
    bounds = ev.bounds
    if bounds is not None and bounds.precision_lower == bounds.precision_lower:
        yield (
            f"Were the {count(found.n_prediction_only)} items that only the prediction has labelled, precision would "
            f"be between {score(bounds.precision_lower)} and {score(bounds.precision_upper)}."
        )
    if not (found.n_truth_only or found.n_prediction_only):
        yield "Both sides have the same items, so that no policy for unmatched items changes a figure."


def believe(ev: Estimated) -> str:
    """Return in a sentence whether to believe the scores: coverage, independent groups, warnings."""
    found = ev.coverage
    if found.n_truth_only or found.n_prediction_only:
        shares = [
            percent(found.n_common / (found.n_common + only))
            for only in (found.n_truth_only, found.n_prediction_only)
        ]
        said = [f"{shares[0]} of the truth's items and {shares[1]} of the prediction's are on both sides"]
    else:
        said = ["Truth and prediction have the same items"]
    known = ev.errors_at_hand()
    if known is not None:
        said.append(
            f"the {count(known.units.n)} groups that share no cluster tell as much as "
            f"{count(round(known.units.effective))} of equal weight"
            if known.units.n > 1
            else "all items hang together, so that no error can be told"
        )
    levels = [each["level"] for each in ev.warnings]
    warned, noted = levels.count("warning"), levels.count("note")
    told = [f"{n} {kind}{'s' * (n != 1)}" for n, kind in ((warned, "warning"), (noted, "note")) if n]
    said.append(
        f"there {'is' if warned + noted == 1 else 'are'} {' and '.join(told)}"
        if told
        else "nothing to warn of"
    )
    return "; ".join(said) + "."


def manifest_content(ev: Estimated) -> dict[str, Any]:
    """Return the manifest, and the command that makes the result again where it was made of files."""
    manifest = few_entries(without_data(ev.manifest))
    return {"manifest": manifest, "command": command(ev.names, ev.manifest.get("arguments") or {})}


def without_data(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without data that were given as arguments: a page shows attributes only if they are named.

    Examples
    --------
    >>> without_data({"arguments": {"weight": "w", "attributes": {"a": [1]}, "slices": [{"few": [1, 2]}]}})
    {'arguments': {'weight': 'w', 'attributes': '(data)', 'slices': [['few']]}}
    """
    given = dict(manifest.get("arguments") or {})
    for name in DATA:
        if name in given and not isinstance(given[name], str):
            given[name] = "(data)"
    if isinstance(given.get("slices"), list):
        given["slices"] = [list(each) if isinstance(each, Mapping) else each for each in given["slices"]]
    return {**manifest, "arguments": given}


def command(
    names: Mapping[str, Any],
    arguments: Mapping[str, Any],
    verb: str = "evaluate",
    unnamed: Mapping[str, str] = UNNAMED,
) -> str | None:
    """Return the command that evaluates the same files again; None where data were given that are in no file.

    `unnamed` says what sides are called that are in no file.

    Examples
    --------
    >>> command({"truth": "a b.csv", "prediction": "p.csv"}, {"slices": ["x", ["x", "y"]], "overlapping": True})
    "fastbcubed evaluate 'a b.csv' p.csv --slice x --slice x,y --overlapping"
    >>> command({"truth": "the truth", "prediction": "the prediction"}, {})
    """
    told = list(arguments.items())
    if any(names.get(side) in (None, data) for side, data in unnamed.items()):
        return None
    if any(_is_data(value) for name, value in told if name in (*DATA, "slices")):
        return None
    words = ["fastbcubed", verb, *(str(names[side]) for side in unnamed)]
    for name, value in told:
        words += _flags(FLAGS.get(name, name), value)
    return shlex.join(words)


def _flags(name: str, value: Any) -> list[str]:
    """Return the flag of an argument."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    if name == "slice" and isinstance(value, list):
        each = [",".join(map(str, one)) if isinstance(one, list) else str(one) for one in value]
        return [word for one in each for word in (flag, one)]
    if isinstance(value, Mapping):
        return [flag, ",".join(f"{key}={one}" for key, one in value.items())]
    if isinstance(value, list):
        return [flag, ",".join(map(str, value))]
    return [] if value is None else [flag, str(value)]


def _is_data(value: Any) -> bool:
    """Tell whether an argument was data, of which a manifest tells the type alone."""
    if isinstance(value, Mapping):
        return True
    if isinstance(value, list):
        return any(isinstance(each, Mapping) for each in value)
    return isinstance(value, str) and value.partition(".")[0] in (
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
    )
