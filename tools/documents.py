"""Our pages: what they link to is there. A lint."""

import re

from common import REPO

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|^ {4}.*?$", re.MULTILINE | re.DOTALL)


def anchors(text):
    """The names that GitHub gives the headings of a page."""
    for heading in HEADING.findall(CODE.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower())
        yield name.replace(" ", "-")


def dead_links(pages, repo=REPO):
    """pages: their paths, relative to the checkout."""
    for page in pages:
        text = CODE.sub("", (repo / page).read_text())
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (repo / page).parent / name if name else repo / page
            if not target.exists():
                yield f"{page} links to {link}, which is not there"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                yield f"{page} links to {link}: {target.name} has no such heading"
