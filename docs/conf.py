"""Settings of Sphinx; run by ``make docs`` from the root of the repository."""

import functools
import importlib
import os
import warnings

import widemargin

project = "widemargin"
author = "the widemargin developers"
copyright = "2026, the widemargin developers"
release = version = widemargin.__version__
extensions = [
    "docs.extensions.command_line",
    "myst_parser",
    "numpydoc",
    "sphinx-mathjax-offline",  # formulas need no network
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/**/*.ipynb"]
suppress_warnings = ["myst.header", "config.cache"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def _definition(name: str, member: str) -> tuple[type, object]:
    """The class that defines a member of a class, and what it defines."""
    module, _, cls = name.rpartition(".")
    owners = getattr(importlib.import_module(module), cls).__mro__
    owner = next(c for c in owners if member in vars(c))
    return owner, vars(owner)[member]


def _methods(name: str, members: list[str]) -> list[str]:
    """Those methods of a class that the library defines."""
    found = [m for m in members if m[0] != "_" and not m.endswith("_request")]
    return [m for m in found if _definition(name, m)[0].__module__.startswith(project)]


def _properties(name: str, members: list[str]) -> list[str]:
    """Those attributes of a class that are computed when they are asked for."""
    kinds = (property, functools.cached_property)
    return [m for m in members if isinstance(_definition(name, m)[1], kinds)]


autosummary_context = {"own_methods": _methods, "properties": _properties}

# The pictures of the gallery are drawn anew in each build. One that fails ends it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
warnings.filterwarnings("ignore", message=".*non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("widemargin",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "widemargin"
html_static_path = ["_static"]
html_css_files = ["widemargin.css"]
html_show_sourcelink = False
smartquotes = False  # of -- they would make a dash, of options too
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
}
