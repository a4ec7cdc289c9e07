"""Settings of Sphinx; run by ``make docs`` from the root of the repository."""

import functools
import importlib
import os
import types
import warnings

import widemargin

project = "widemargin"
author = "the widemargin developers"
copyright = "2026, the widemargin developers"
release = version = widemargin.__version__
extensions = [
    "docs.extensions.command_line",
    "docs.extensions.looks",
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


def _members(name: str) -> dict[str, object]:
    """What classes of the library define for a class, by public names."""
    module, _, cls = name.rpartition(".")
    found: dict[str, object] = {}
    for owner in reversed(getattr(importlib.import_module(module), cls).__mro__):
        if owner.__module__.startswith(project):
            found |= {m: v for m, v in vars(owner).items() if not m.startswith("_")}
    return found


def _methods(name: str) -> list[str]:
    """Methods, but those that scikit-learn writes (set_fit_request, ...)."""
    kinds = (types.FunctionType, classmethod, staticmethod)
    found = (m for m, v in _members(name).items() if isinstance(v, kinds))
    return sorted(m for m in found if not m.endswith("_request"))


def _properties(name: str) -> list[str]:
    """Attributes that are computed when they are asked for."""
    kinds = (property, functools.cached_property)
    return sorted(m for m, v in _members(name).items() if isinstance(v, kinds))


autosummary_context = {"methods_of": _methods, "properties_of": _properties}

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
