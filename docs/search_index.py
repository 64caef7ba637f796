"""The index of the site's search: the title and the text of each section of each page.

It takes the place of Sphinx's own index, which has the words of whole pages only. Only the page of the search loads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pages_from_code
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search import IndexBuilder
from sphinx.search.en import ENGLISH_STOPWORDS

SCORES = "docs/reference/scores/"


def sections(page: str, node: nodes.Node) -> Iterator[tuple[str, str, str, str]]:
    """Yield page, anchor, title and text of each section, term of the glossary and documented name of a page."""
    whole = page.startswith(SCORES) and page != f"{SCORES}index"  # pages of scores all have the same headings
    for each in node.findall(is_place):
        if isinstance(each.parent, nodes.document):
            title = each.next_node(nodes.title).astext()
            if whole:
                title = ", ".join(name for name, other in pages_from_code.PAGE.items() if other == title)
            yield page, "", title, text_of(each, whole)
        elif not whole:
            yield page, *place(each), text_of(each)


def is_place(node: nodes.Node) -> bool:
    """Return whether a node has an anchor of its own: a section, a term of the glossary, or a documented name."""
    if isinstance(node, addnodes.desc):
        return bool(node[0]["ids"]) and not isinstance(node.parent, nodes.section)
    if isinstance(node, nodes.definition_list_item):
        return bool(node[0]["ids"])
    return isinstance(node, nodes.section)


def place(node: nodes.Element) -> tuple[str, str]:
    """Return the anchor and the title of a place within a page."""
    if isinstance(node, nodes.section):
        return node["ids"][0], node.next_node(nodes.title).astext()
    head = node[0]
    name = head["ids"][0].removeprefix("fastbcubed.") if isinstance(node, addnodes.desc) else head.astext()
    return head["ids"][0], name


def text_of(node: nodes.Node, whole: bool = False) -> str:
    """Return the text of a node without titles and outputs and, unless `whole`, without that of the places in it."""
    if isinstance(node, nodes.Text):
        return node.astext()
    parts = (text_of(each, whole) for each in node.children if not is_left_out(each, whole))
    joint = "" if isinstance(node, nodes.TextElement) else " "
    return " ".join(joint.join(parts).split()) if joint else "".join(parts)


def is_left_out(node: nodes.Node, whole: bool) -> bool:
    """Return whether the text of a node is not that of the place around it."""
    if isinstance(node, nodes.Element) and "cell_output" in node.get("classes", ()):
        return True
    if whole:  # the parameters of all scores are the same
        return isinstance(node, (nodes.Invisible, nodes.raw, nodes.title, addnodes.desc))
    is_name = isinstance(node, nodes.term) and bool(node["ids"])
    others = (nodes.Invisible, nodes.raw, nodes.title, addnodes.desc_signature, addnodes.toctree)
    return is_name or is_place(node) or isinstance(node, others)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the index, with the stemmer and the stop words of Sphinx, as a script that also works from file://."""
    if exception is not None:
        return
    found = [each for page in sorted(app.env.all_docs) for each in sections(page, app.env.get_doctree(page))]
    stemmer = IndexBuilder(app.env, "en", {}, "").get_js_stemmer_code()
    data = {"STOP_WORDS": sorted(ENGLISH_STOPWORDS), "SECTIONS": found}
    lines = [
        stemmer,
        *(f"const {name} = {json.dumps(each, separators=(',', ':'))};" for name, each in data.items()),
    ]
    Path(app.outdir, "sections.js").write_text("\n".join(lines), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Turn Sphinx's own index off, and write ours when all pages are there."""
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))
    app.connect("build-finished", write)
