"""The index of the site's search: the title and the text of each section of each page, and the messages of all errors.

It takes the place of Sphinx's own index, which has the words of whole pages only. Only the page of the search loads it.
A comment `<!-- also: … -->` in a section has words that its readers may use, but its text does not.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pages_from_code
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search import IndexBuilder
from sphinx.search.en import ENGLISH_STOPWORDS

import fastbcubed as fb
from fastbcubed.cli.commands import COMMANDS
from fastbcubed.results.warnings import CODES

SCORES = "docs/reference/scores/"
#: The page that explains errors, in sections that name them, and the index of questions, which only repeats titles.
ERRORS, QUESTIONS = "docs/reference/errors", "docs/how-to/short-answers"
COMMAND_PAGES = {f"docs/reference/commands/{each.name}": each.help for each in COMMANDS}
ALSO = re.compile(r"<!-- also: (.*?) -->", re.DOTALL)


def sections(page: str, node: nodes.Node) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield page, anchor, title, text and further words of each section, term and documented name of a page."""
    whole = page.startswith(SCORES) and page != f"{SCORES}index"  # pages of scores all have the same headings
    for each in node.findall(is_place):
        if isinstance(each.parent, nodes.document):
            title = each.next_node(nodes.title).astext()
            if whole:
                title = ", ".join(name for name, other in pages_from_code.PAGE.items() if other == title)
            elif page in COMMAND_PAGES:
                title += f": {COMMAND_PAGES[page]}"
            yield page, "", title, text_of(each, whole), also(each)
        elif not whole:
            yield page, *place(each), text_of(each), also(each)


def also(node: nodes.Node) -> str:
    """Return the further words of a section itself."""
    comments = (each.astext() for each in node.children if isinstance(each, nodes.raw))
    return " ".join(match[1] for text in comments if (match := ALSO.search(text)))


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
    if not isinstance(node, addnodes.desc):
        return head["ids"][0], head.astext()
    summary = node.next_node(nodes.paragraph)
    what = f": {summary.astext().split('. ')[0].rstrip('.')}" if summary else ""
    return head["ids"][0], f"{head['ids'][0].removeprefix('fastbcubed.')}{what}"


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


def messages() -> dict[str, list[str]]:
    """Return the messages of each class of errors, as in the code, with … for what is filled in."""
    found: dict[str, set[str]] = {}
    for path in Path(fb.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if name in fb.errors.__all__ and node.args:
                found.setdefault(name, set()).add(" ".join(words_of(node.args[0]).split()))
    return {name: sorted(text for text in each if len(text) > 15) for name, each in sorted(found.items())}


def words_of(node: ast.AST) -> str:
    """Return the words of an expression that makes a text."""
    if isinstance(node, ast.JoinedStr):
        return "".join(words_of(each) for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "…"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the index, with the stemmer and the stop words of Sphinx, as a script that also works from file://."""
    if exception is not None:
        return
    pages = sorted(app.env.all_docs.keys() - {QUESTIONS})
    found = [each for page in pages for each in sections(page, app.env.get_doctree(page))]
    stemmer = IndexBuilder(app.env, "en", {}, "").get_js_stemmer_code()
    explained = {
        name: each[1] for each in found if each[0] == ERRORS for name in re.findall(r"\w+Error", each[2])
    }
    raised = [[explained.get(name, ""), name, texts] for name, texts in messages().items()]
    data = {"STOP_WORDS": sorted(ENGLISH_STOPWORDS), "SECTIONS": found, "ERRORS": ERRORS, "MESSAGES": raised}
    data["CODES"] = sorted(CODES)
    lines = [
        stemmer,
        *(f"const {name} = {json.dumps(each, separators=(',', ':'))};" for name, each in data.items()),
    ]
    Path(app.outdir, "sections.js").write_text("\n".join(lines), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Turn Sphinx's own index off, and write ours when all pages are there."""
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))
    app.connect("build-finished", write)
