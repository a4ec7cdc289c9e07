"""Report pages read back, and data for them."""

import re
from html.parser import HTMLParser
from unittest import mock

import numpy as np

from widemargin.report import drawing

VOID = {"meta", "br", "hr", "img", "link", "input"}


def _undrawn(figure, name, alt):
    return "<svg/>"


# Drawing takes most of the time of a page. A test that reads words has the pictures made
# and an empty one put in the place of each.
words_only = mock.patch.object(drawing, "svg", _undrawn)


class Page(HTMLParser):
    """A page, read back: its text and its tags; fails where tags are not balanced."""

    def __init__(self, source):
        super().__init__()
        self.source, self.open, self.tags, self.words = source, [], [], []
        self.feed(source)
        self.close()
        assert self.open == []
        self.text = re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th", "h1", "h2", "p", "title", "figcaption"):
            self.words.append(" ")

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def named(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def clouds(n_classes, n_features=2, each=40, spread=1.0, seed=0):
    """Normal clouds around random centers, shuffled."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), each))
    centers = 4.0 * rng.standard_normal((n_classes, n_features))
    return centers[y] + spread * rng.standard_normal((len(y), n_features)), y
