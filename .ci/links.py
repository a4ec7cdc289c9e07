"""Check the links of built pages without a network: ``links.py FOLDER``.

Every link to a page, to a place on it or to a file must lead somewhere, and no page may
need anything from the network to be shown.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a page loads, as opposed to what a reader may follow.
LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "link": "href",
}
LOADING = {"stylesheet", "icon", "preload", "modulepreload", "shortcut icon"}


class Page(HTMLParser):
    """The places of a page, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, found: list[tuple[str, str | None]]) -> None:
        """Note what a tag names and links to."""
        values = {name: value for name, value in found if value is not None}
        self.places.update(values[key] for key in ("id", "name") if key in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if (name := LOADED.get(tag)) in values:
            assert name is not None
            if tag != "link" or values.get("rel") in LOADING:
                self.loads.append(values[name])


def wrong(folder: Path) -> list[str]:
    """What is wrong with the links of all pages."""
    pages = {
        path.resolve(): Page(path)
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }
    return [
        f"{path.relative_to(folder.resolve())}: {link} {why}"
        for path, page in pages.items()
        for link, loads in [(x, False) for x in page.links]
        + [(x, True) for x in page.loads]
        if (why := fault(link, loads, path, pages))
    ]


def fault(link: str, loads: bool, path: Path, pages: dict[Path, Page]) -> str | None:
    """Why a link of a page does not do, if so."""
    parts = urlsplit(link)
    if parts.scheme == "data" or (parts.scheme and not loads):
        return None
    if parts.scheme or parts.netloc:
        return "needs the network"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "leads nowhere"
    place = unquote(parts.fragment)
    if place and target in pages and place not in pages[target].places:
        return "names a place that is not there"
    return None


def main() -> int:
    """Print what is wrong; the exit status."""
    found = wrong(Path(sys.argv[1]))
    print("\n".join(found) or "All links lead somewhere.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
