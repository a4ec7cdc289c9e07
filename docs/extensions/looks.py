"""What pages look like: pictures that scroll on a phone, code without a blank end."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx_gallery.directives import imgsgnode


def arrange(app: Sphinx, page: nodes.document) -> None:
    """Give each picture a box of its own, and end code with its last line.

    A box scrolls where a picture would be too small to be read (widemargin.css). The
    blank line that ends an example is for doctest.
    """
    for code in page.findall(nodes.literal_block):
        if "source" in code:  # a file, which is a table of measurements
            code["classes"].append("measured")
        if code.rawsource == code.astext():  # else it is marked up, not highlighted
            code.rawsource = code.rawsource.rstrip("\n")
            code[:] = [nodes.Text(code.rawsource)]
    for picture in [*page.findall(nodes.image), *page.findall(imgsgnode)]:
        whole = picture.parent
        alone = isinstance(whole, nodes.paragraph) and len(whole) == 1
        if alone or isinstance(whole, nodes.section | nodes.document):
            place = whole if alone else picture
            box = nodes.container(classes=["picture"])
            place.replace_self(box)
            box += picture


def setup(app: Sphinx) -> ExtensionMetadata:
    """Arrange each page once it is read."""
    app.connect("doctree-read", arrange)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
