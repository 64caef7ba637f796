"""The configuration of Sphinx, which builds these pages: `python -m sphinx -W -c docs . docs/_build`.

The source folder is the repository, so links between docs, notebooks and benchmarks work both here and on the site.
"""

import inspect
import json
import os
import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pages_from_code
from numpydoc import xref
from sphinx.errors import ConfigError

import fastbcubed

project = "fastbcubed"
author = copyright = "The fastbcubed developers"
release = version = fastbcubed.__version__

root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "benchmarks/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = ["docs/_build", "docs/jupyter_execute", "docs/packaging"]
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "dark_pictures",
    "search_index",
]
#: The folder of other projects' inventories of documented names: `python.inv`, `numpy.inv`, … If it exists, types are
#: linked to these projects; the build needs no network either way.
inventories = Path(os.environ.get("FASTBCUBED_INVENTORIES") or Path(__file__).with_name("_inventories"))
OTHERS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "pyarrow": "https://arrow.apache.org/docs/",
    "polars": "https://docs.pola.rs/api/python/stable/",
    "altair": "https://altair-viz.github.io/",
}
intersphinx_mapping = {
    name: (url, str(inventories / f"{name}.inv"))
    for name, url in OTHERS.items()
    if (inventories / f"{name}.inv").exists()
}
if intersphinx_mapping:
    extensions.append("sphinx.ext.intersphinx")
else:
    xref.DEFAULT_LINKS.clear()  # numpydoc's own links, to these projects

myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks are executed by tests, and have stored outputs
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {
    **{name: f"fastbcubed.{name}" for name in (*pages_from_code.CLASSES, "EvaluationWarning")},
    **({"DataFrame": "pandas.DataFrame", "ndarray": "numpy.ndarray"} if intersphinx_mapping else {}),
}
numpydoc_xref_ignore = "all"  # link these names only
default_role = "py:obj"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = f"fastbcubed {version}"
html_logo = html_favicon = "_static/logo.svg"
myst_html_meta = {
    "description": "Score clusterings of up to a billion records against the truth, by item, cluster and slice."
}
html_additional_pages = dict.fromkeys(pages_from_code.MOVED, "moved.html")
html_additional_pages |= {"index": "to_start.html", "search": "search.html"}
html_context = {"moved": pages_from_code.MOVED}
templates_path = ["_templates"]
html_extra_path = ["_generated"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["names.js"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "fastbcubed"},
    "header_links_before_dropdown": 5,
    "navbar_end": ["versions.html", "theme-switcher"],
    "navbar_persistent": ["search-button"],
    "collapse_navigation": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
#: The versions of this site; the first is the one that is built. Addresses are relative to the root of the site.
VERSIONS = json.loads(
    Path(__file__).with_name("_static").joinpath("versions.json").read_text(encoding="utf-8")
)
if VERSIONS[0]["version"] != release:
    raise ConfigError(
        f"docs/_static/versions.json begins with {VERSIONS[0]['version']}, but this is {release}"
    )
html_context |= {"versions": VERSIONS}

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
repository = PROJECT.get("urls", {}).get("Repository", "").rstrip("/")
if not repository and "GITHUB_REPOSITORY" in os.environ:  # where CI builds the site
    repository = f"https://github.com/{os.environ['GITHUB_REPOSITORY']}"
if repository:
    html_context |= {
        "edit_page_provider_name": "GitHub",
        "edit_page_url_template": f"{repository}/edit/main/{{{{ edited or file_name }}}}",
    }
    html_theme_options |= {
        "use_edit_page_button": True,
        "github_url": repository,
        "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    }


#: Classes that users do not construct themselves; their constructors are not part of the interface.
MADE = (
    "Evaluation",
    "Comparison",
    "Diff",
    "Sweep",
    "Estimates",
    "Explanation",
    "Contingency",
    "Table",
    "Clustering",
)


def setup(app) -> None:
    """Write the generated pages before Sphinx collects pages, and connect the hooks for docstrings."""
    app.connect("config-inited", lambda app, config: pages_from_code.write(Path(app.confdir)), priority=100)
    app.connect("autodoc-process-signature", without_constructor)
    app.connect("autodoc-skip-member", undocumented)
    app.connect("autodoc-process-docstring", references_as_list, priority=100)
    app.connect("html-page-context", edit_the_code)


def without_constructor(app, kind, name, thing, options, signature, returns):
    """Omit the arguments of constructors that users do not call."""
    return ("", None) if kind == "class" and thing.__name__ in MADE else None


def undocumented(app, kind, name, thing, skip, options):
    """Skip methods for other modules or for completion, whose docstrings have no sections."""
    ours = kind == "class" and inspect.isfunction(thing) and thing.__module__.startswith("fastbcubed")
    return (
        True
        if ours and not name.startswith("to_") and "\n----" not in (inspect.getdoc(thing) or "")
        else None
    )


def references_as_list(app, kind, name, thing, options, lines):
    """Render references of a docstring as a list; footnotes would have roles that screen readers do not know."""
    lines[:] = [re.sub(r"\[(\d+)\]_", r"[\1]", re.sub(r"^\.\. \[(\d+)\] ", r"\1. ", line)) for line in lines]


def edit_the_code(app, page, template, context, doctree):
    """Let the edit links of pages that are made from the code lead to the code."""
    context["edited"] = pages_from_code.source_of(page)
