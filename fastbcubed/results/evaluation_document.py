"""The page of an evaluation as a document, from its content: verdict, sides, losses, slices, clusters, repairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastbcubed.metrics.bcubed import LOSS_OF_SIDE
from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Clusters,
    Code,
    Document,
    Facts,
    Fold,
    Grid,
    Group,
    Heading,
    Members,
    Opened,
    Prose,
    Section,
)
from fastbcubed.render.json import as_json
from fastbcubed.render.number_formats import count, counted, label, named, percent, score_text
from fastbcubed.results.concentration import KINDS
from fastbcubed.results.page import Content, about_slicings, notices

#: Slices that are drawn, and characters of a name for which three charts have room side by side.
DRAWN, SHORT = 20, 14


def document(content: Content) -> Document:
    """Return the page of an evaluation."""
    names = content["names"]
    scored = f"{counted(content['n_items'], 'item')}{', weighted' * content['weighted']}"
    rows = [
        ("Prediction", names.get("prediction") or "the prediction"),
        ("Truth", names.get("truth") or "the truth"),
        ("Scored", scored + "; clusters may overlap" * content["overlapping"]),
    ]
    made = origin(content["origin"])
    if not content["origin"]["command"]:
        text = "The result was made of data in memory, so that there is no command that makes it again."
        made = [Prose([text], "note"), *made]
    sections = [
        Section("verdict", "Verdict", [*_verdict(content["verdict"]), *notices(content)]),
        Section("sides", "The two sides", list(_sides(content))),
        Section("loss", "Where the loss is", list(_losses(content))),
        Section("slices", "Slices", list(_slices(content["slices"]))),
        Section("clusters", "Clusters to look at", list(_clusters(content["clusters"]))),
        Section("repairs", "Repairs", list(_repairs(content["repairs"]))),
        definitions_section(content["definitions"]),
        Section("origin", "How it was made", made),
    ]
    return Document([Facts(rows, "sides", ("pred", "true", ""))], [each for each in sections if each.blocks])


def _verdict(verdict: Content) -> Iterator[Block]:
    """Yield the sentences, next to the scores with intervals and those of trivial predictions."""
    scores, aside = verdict["scores"], list[Block]()
    if scores:
        rows = [
            [
                row["label"], score_text(row["value"]) if row["value"] is not None else "n/a",
                f"{score_text(row['low'])} to {score_text(row['high'])}" if row["se"] else "",
            ]
            for row in scores
        ]  # fmt: skip
        with_intervals = any(row["low"] is not None for row in scores)
        caption = f"Scores over all items{', with intervals of 95 %' * with_intervals}"
        aside.append(Grid(["", "", ""], rows, 1, ("text", "text", "text"), caption, style="big"))
    known = [row for row in scores if row["value"] is not None]
    if scores and all(0 <= row["value"] <= 1 for row in known):
        told = ", ".join(f"{row['label']} {score_text(row['value'])}" for row in known)
        marks = {"alone": "▲ every item alone", "one": "■ all items in one cluster"}
        trivial = ", ".join(text for name, text in marks.items() if name in verdict["extremes"])
        text = (
            "● this prediction. A score means little by itself, so the grey marks are what useless predictions would "
            f"reach on the same truth: {trivial}."
        )
        said = f"Dot plot from 0 to 1: {told}"
        aside.append(Chart("scores", "scores", (verdict,), said, text=text if trivial else ""))
    yield Beside([[Prose(verdict["sentences"], "lead")], aside])


def _sides(content: Content) -> Iterator[Block]:
    """Yield the clusters of both sides by size, and their outcomes."""
    sides = content["sides"]
    yield Prose(content["verdict"]["outcomes"]["lines"])
    rows = [
        [title, own["items"], own["clusters"], own["singletons"], own["size_quantiles"].get("0.5"), own["largest"]]
        for title, own in (("Truth", sides["summary"]["true"]), ("Prediction", sides["summary"]["pred"]))
    ]  # fmt: skip
    header = ["Side", "items", "clusters", "of one item", "median size", "largest"]
    about = "Items and clusters of both sides"
    left: list[Block] = [Grid(header, rows, 1, ("text", *["count"] * 5), about=about)]
    texts = {
        "true": ("What became of the true clusters", "Exact: a predicted cluster holds the same items. Split: in "
                 "several. Merged: whole, but with others."),
        "pred": ("What the predicted clusters are", "Fragment: part of one true cluster. Union: several whole ones. "
                 "Mixed: parts of several."),
    }  # fmt: skip
    outcomes = sides["outcomes"]
    for side, (title, text) in texts.items() if outcomes else ():
        said = f"Stacked bars: what became of {KINDS[side]}s"
        left.append(Chart(f"outcomes-{side}", "outcomes", (outcomes, side), said, title, text))
    if not outcomes and content["overlapping"]:
        why = "an item of clusters that overlap can be split from some and stay with others."
        left.append(Prose([f"The outcome of each cluster is not defined: {why}"], "note"))
    right: list[Block] = []
    if sides["sizes"]:
        text = (
            "Share of the items that are in clusters of a size. More orange at small sizes points to splitting, more "
            "orange at large ones to merging."
        )
        said = "Bar chart: share of the items in clusters of each size, truth beside prediction"
        data = (sides["sizes"], "memberships" if content["overlapping"] else "items")
        right.append(Chart("sizes", "sizes", data, said, "How large the clusters are", text))
    yield Beside([left, right])
    if outcomes:
        shown = [{**row, "side": "true" if row["side"] == "true" else "predicted"} for row in outcomes]
        columns = [("Side", "side", "text"), ("outcome", "outcome", "text")]
        columns += [("clusters", "n_clusters", "count"), ("items", "n_items", "count")]
        columns += [(f"{name} lost", f"{name}_loss", "share") for name in ("precision", "recall")]
        yield Fold("Outcomes as a table", [Grid.of(shown, columns, 2, about="Outcomes of clusters")])


def _losses(content: Content) -> Iterator[Block]:
    """Yield in how few clusters the loss is, and scores by the size of the cluster."""
    curves, by_size, charts = content["sides"]["lorenz"], content["by_size"], list[Sequence[Block]]()
    if curves and any(curve["n_half"] for curve in curves.values()):
        halves = ", ".join(
            f"half of it in {counted(curve['n_half'], KINDS[side])}"
            for side, curve in curves.items()
            if curve["n_half"]
        )
        text = (
            "Share of the loss that the costliest clusters have together: of precision in predicted ones (dashed), of "
            "recall in true ones. Where half of it is in few clusters, fix these; otherwise look for a "
            "systematic cause."
        )
        said = f"Line chart: share of the loss in the costliest clusters; {halves}"
        charts.append([Chart("lorenz", "lorenz", (curves,), said, "In few clusters, or in many?", text)])
    texts = {
        "pred_size": ("Precision by the size of the predicted cluster", "The dashed line is all items. Grey: fewer "
                      "than 30 independent groups, so that little is known."),
        "true_size": ("Recall by the size of the true cluster", "The dashed line is all items."),
    }  # fmt: skip
    for key, (title, text) in texts.items():
        if key in by_size:
            if key == "true_size" and any(row["n_units"] for row in by_size[key]["rows"]):
                text = "Lines are intervals of 95 %, where these are known; the dashed line is all items."
            charts.append([_slice_chart(by_size[key], by_size[key]["scores"][0], key, title, text)])
    if charts:
        yield Beside(charts)
    for key, slicing in sorted(by_size.items()):
        of = "predicted" if key == "pred_size" else "true"
        yield Fold(f"{slicing['scores'][0].capitalize()} by {of} size as a table", [_slice_grid(slicing)])


def _slices(slices: Content) -> Iterator[Block]:
    """Yield each slicing: charts of its scores, and a table."""
    rows = slices["rows"]
    if not rows:
        return
    text = (
        "Dots are scores, lines their intervals of 95 %, and the dashed line is the score of all items. Grey: fewer "
        "than 30 independent groups of items, or 30 items where those are not known; do not read much into it."
    )
    yield about_slicings(slices, text)
    for k, slicing in enumerate(rows):
        own, n = slicing["rows"], slicing["n"]
        yield Heading(f"By {named(slicing['names'])}")
        if not slicing["ordered"] and len(slicing["names"]) != 2:
            drawn = f"{min(len(own), DRAWN)} of {count(n)} slices are drawn"
            yield Prose([f"{drawn}: those that cost most, the costliest first."], "note")
        long = max((len(named(row["slice"])) for row in own[:DRAWN]), default=0) > SHORT
        charts = slicing_charts(slicing, f"slices-{k}")
        yield Beside([[chart] for chart in charts], "panels long" if long else "panels")
        part = f": {len(own)} of {count(n)} slices, those that cost most" if len(own) < n else ""
        yield Fold(f"As a table{part}", [_slice_grid(slicing)])


def slicing_charts(slicing: Content, name: str) -> list[Chart]:
    """Return the charts of a slicing: one for each score, or a heat map where two attributes are crossed."""
    if len(slicing["names"]) == 2 and slicing["scores"]:
        score, part = slicing["scores"][-1], len(slicing["rows"]) < slicing["n"]
        by = " and ".join(map(label, slicing["names"]))
        said = f"Heat map: {score} by {by}, as the table below has it"
        text = "Digits behind the point; the darker, the lower; grey digits: few items."
        text += f" Of {count(slicing['n'])} pairs, those that cost most." * part
        title = f"{'F1' if score == 'f1' else score} of each pair"
        return [Chart(name, "crossed", (slicing, score), said, title, text)]
    return [_slice_chart(slicing, score, f"{name}-{k}") for k, score in enumerate(slicing["scores"])]


def _slice_chart(slicing: Content, score: str, name: str, title: str = "", text: str = "") -> Chart:
    said = f"Dot plot: {score} by {label(slicing['by'])}, as the table below has it"
    return Chart(name, "slices", (slicing, score), said, title, text)


def _slice_grid(slicing: Content) -> Grid:
    """Return slices with their scores, standard errors and losses; those with few groups are soft."""
    names, scores, own = slicing["names"], slicing["scores"], slicing["rows"]
    rows = [
        [*row["slice"], row["n_items"], *(row.get(name) for score in scores for name in (score, f"{score}_se")),
         row["precision_loss"], row["recall_loss"]]
        for row in own
    ]  # fmt: skip
    header = [*names, "items", *(part for score in scores for part in (score, "±"))]
    forms = (*["name"] * len(names), "count", *["score", "error"] * len(scores), "share", "share")
    soft = [k for k, row in enumerate(own) if row["few"]]
    header += ["precision lost", "recall lost"]
    return Grid(header, rows, len(names), forms, about=f"By {slicing['by']}", soft=soft)


def _clusters(clusters: Content | None) -> Iterator[Block]:
    if not clusters:
        return
    kept = clusters["pred"]["opened"]
    lost = ' The members were not kept; save with keep="items" to have them here.'
    yield Prose([
        "Those that cost most. Each opens to its members, grouped by the clusters of the other side; a marked value "
        f"differs from what most of the members shown have.{'' if kept else lost}"
    ], "note")  # fmt: skip
    for side, own in clusters.items():
        kind, other = ("predicted", "true") if side == "pred" else ("true", "predicted")
        what, rows = LOSS_OF_SIDE[side].removesuffix("_loss"), own["rows"]
        title = f"{kind.capitalize()} clusters that cost most {what}"
        yield Heading(title, id=f"clusters-{side}", side=side)
        if not rows:
            yield Prose([f"None: no {kind} cluster costs any {what}."])
            continue
        text = f"{len(rows)} of {counted(own['n'], 'cluster')}"
        text += "" if own["n_lossy"] is None else f", {count(own['n_lossy'])} of which cost anything"
        if own["share_shown"] is not None:
            text += f". Together they have {percent(own['share_shown'])} of the {what} that is lost"
        yield Prose([f"{text}."], "note")
        yield Clusters(title.lower(), [_opened(row, side, own["loss"], f"{other} cluster") for row in rows])


def _opened(row: Content, side: str, loss: str, of: str) -> Opened:
    """Return a cluster with its costs, and its members."""
    text = counted(row["n_items"], "item")
    if row["n_parts"] is not None:
        text += f" {'of' if side == 'pred' else 'in'} {counted(row['n_parts'], of)}"
    names = {"precision": "precision of its items", "recall": "recall", "f1": "F1"}
    scores = [f"{name} {score_text(row[key])}" for key, name in names.items() if row.get(key) is not None]
    told = f"{percent(row[loss])} of the {loss.removesuffix('_loss')} of all items is lost here."
    if scores:
        listed = ", ".join(scores)
        told += f" {listed[0].upper()}{listed[1:]}."
    share = row["share_of_loss"]
    return Opened(
        row["id"], row["cluster"], [row["outcome"]] if "outcome" in row else [], text,
        [] if share is None else [("", percent(share), "of the loss")], share,
        [Prose([told], "small"), *members_blocks(row["opened"])],
    )  # fmt: skip


def members_blocks(opened: Content | None) -> list[Block]:
    """Return the members of an opened cluster, grouped by the clusters of the other side."""
    if not opened:
        return []
    columns, weighted, kind = opened["columns"], opened["weighted"], opened["other_kind"]
    groups = []
    for part in opened["parts"]:
        of, n = part[f"{opened['other']}_cluster"], part["n_items"]
        whole = part.get("n_items_of_cluster")
        text = (
            f"{counted(n, 'item')} here"
            if whole is None
            else f"{count(n)} of its {counted(whole, 'item')} here"
        )
        alone = "(alone by policy)" if of is None else "(none)" if of == [] else ""
        title, rows = f"{kind} cluster {alone}".rstrip(), _member_rows(part, columns, weighted)
        groups.append(Group(title, None if alone else of, text, rows, n))
    alone = opened["one_sided"]
    if alone["n_items"]:
        text = f"{counted(alone['n_items'], 'item')}, by policy {alone['policy']}"
        rows = _member_rows(alone, columns, weighted)
        groups.append(Group("Not on the other side", None, text, rows, alone["n_items"]))
    header = ["item", *["weight"] * weighted, *columns]
    forms = ["id", *["amount"] * weighted, *["name"] * len(columns)]
    left_out = opened["n_listed"] - len(opened["parts"])
    more = f"{counted(left_out, f'more {kind.lower()} cluster')} not shown."
    return [Members(header, forms, groups), *([Prose([more], "note")] if left_out > 0 else [])]


def _member_rows(part: Content, columns: Sequence[str], weighted: bool) -> list[tuple[list[Any], list[bool]]]:
    rows = []
    for member in part["members"]:
        values = [member["item"], *[member["weight"]] * weighted]
        values += [member["attributes"][name] for name in columns]
        differ = [False, *[False] * weighted, *(name in member["differs"] for name in columns)]
        rows.append((values, differ))
    return rows


def _repairs(repairs: Content | None) -> Iterator[Block]:
    """Yield which clusters to fix first, and F1 after each repair."""
    if not repairs or not repairs["rows"]:
        return
    yield Prose([
        "If somebody could fix one cluster after the other by the truth, these would bring most. To split a predicted "
        "cluster parts it by the truth; to gather a true one brings its items together."
    ])  # fmt: skip
    own, start = repairs["rows"], repairs["start"].get("f1")
    rows = [
        {**row, "kind": "split predicted" if row["kind"] == "split" else "gather true",
         "cluster": "(alone by policy)" if row["cluster"] is None else row["cluster"]}
        for row in own
    ]  # fmt: skip
    columns = [
        ("#", "rank", "count"),
        ("repair", "kind", "text"),
        ("cluster", "cluster", "name"),
        ("items", "n_items", "count"),
        ("alone adds to F1", "gain", "score"),
        ("F1 then", "running", "score"),
    ]
    grid = Grid.of(rows, columns, 0, about="Repairs")
    charts: list[Block] = []
    if start is not None:
        text = f"From {score_text(start)} to {score_text(own[-1]['running'])}."
        said = "Line chart: F1 after each repair, as the table below has it"
        charts.append(Chart("repairs", "repairs", (own, start), said, "F1 after each repair", text))
    yield Beside([charts, [grid]], "two aside")


def definitions_section(found: Content) -> Section:
    """Return the scores with their definitions, and the policies on items that one side lacks."""
    text = (
        "Precision asks of each item how many of the items it is clustered with belong with it; recall, how many of "
        "those that belong with it are clustered with it. Both are means over items; the item itself counts. F1 is "
        "high only if both are."
    )
    forms = {"score": "text", "value": "any", "best": "text", "definition": "name", "source": "name"}
    columns = [(key, key, form) for key, form in forms.items()]
    blocks: list[Block] = [
        Prose([text, found["text"]]),
        Grid.of(found["rows"], columns, about="Scores and their definitions"),
    ]
    if missing := found["not_computed"]:
        facts = Facts([(each["score"], each["message"]) for each in missing])
        blocks.append(Fold(f"{len(missing)} scores were not computed", [facts]))
    blocks += [Heading("Items that one side lacks"), Prose([*found["lines"], *found["otherwise"]["lines"]])]
    return Section("definitions", "Definitions", blocks)


def command_blocks(command: str | None) -> list[Block]:
    """Return the command that makes a result again; nothing where there is none."""
    if not command:
        return []
    return [Prose(["This command makes the result again where its files are:"]), Code(command)]


def origin(found: Content) -> list[Block]:
    """Return the command that makes a result again, and its manifest."""
    manifest = found["manifest"]
    rows = [(name, str(version)) for name, version in (manifest.get("versions") or {}).items()]
    rows += [("engine", manifest["engine"])] if "engine" in manifest else []
    for side in ("truth", "prediction", "baseline", "experiment"):
        if isinstance(own := manifest.get(side), Mapping):
            text = "rows not counted" if own["rows"] is None else counted(own["rows"], "row")
            rows.append(
                (side, text + (f", fingerprint {own['fingerprint']}" if own.get("fingerprint") else ""))
            )
    rows += [(name, as_json(value, None)) for name, value in (manifest.get("arguments") or {}).items()]
    return [*command_blocks(found["command"]), Facts(rows)]
