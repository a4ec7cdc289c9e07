"""Settings of Sphinx; run by ``make docs``."""

import widemargin

project = "widemargin"
author = "the widemargin developers"
copyright = "2026, the widemargin developers"
release = version = widemargin.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "widemargin"
suppress_warnings = ["myst.header"]
