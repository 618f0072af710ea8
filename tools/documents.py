"""Lints of our texts: links lead somewhere, sentences are short, one thing has one word (docs/reference/terms.md)."""

import re

from spillway.common import REPO

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|^ {4}.*?$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`]*`")
# Text in a source: comments and strings.
TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
MAX_WORDS = 40
# Words to avoid, and what to write instead.
WORDS = {
    r"(a|the|last|next|first|each|two) looks?": "sample, observation, tick, scan",
    r"look(s|ed|ing)? at": "sample, scan, read",
    r"(its|their|take|takes|taken|of) turns?": "reservation in the write throttle; delayed by the write throttle",
    r"upstream's formula": "adaptive flushing",
    r"at any price": "sync flushing",
    r"(made|makes?|written) whole": "written atomically; torn-page protection",
    r"go(es)? without": "bypasses the doublewrite buffer",
    r"the device (is known to |was seen to )?carr(y|ies)": "device write capacity",
    r"redo log (is|may be|was) (filled|emptied)": "redo generation, reclaim rate",
    r"handed over": "submitted",
    r"lets? go": "releases, resets",
    r"full soonest": "runs out of free space first",
    r"free ahead": "preallocated",
    r'in all(?=[,.;:)"]|$)': "in total",
    r"so many": "the number",
    r"as ever": "nothing",
    r"but for": "except, or a sentence that says what is so",
    r"(those )?who (change|write|wait|come|need|has|have)s?": "a session that ...",
    r"telling|is told (so|that it)": "representative",
    r"seed 00[1-9]": "nothing: docs/origins.md is the only place",
}
FORBIDDEN = [(re.compile(rf"\b(?:{words})(?!\w)", re.IGNORECASE), instead) for words, instead in WORDS.items()]
# The lint of words skips this page.
TERMS = "docs/reference/terms.md"


def anchors(text):
    """The anchors that GitHub gives the headings of a page."""
    for heading in HEADING.findall(CODE.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower())
        yield name.replace(" ", "-")


def dead_links(pages, repo=REPO):
    """pages: paths relative to the checkout."""
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


def sentences(text):
    """The sentences of a page's prose and table cells; inline code counts as one word."""
    prose = INLINE_CODE.sub("code", LINK.sub("]", CODE.sub("\n\n", text)))
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*] |\s*\d+\. |#|\|)|\|", prose):
        text = re.sub(r"^([-*]|\d+\.|#+) ", "", " ".join(block.split()))
        yield from re.split(r"(?<=[.!?:;])\s+", text)


def long_sentences(pages, repo=REPO):
    for page in pages:
        for sentence in sentences((repo / page).read_text()):
            if (n := len(sentence.split())) > MAX_WORDS:
                yield f"{page}: a sentence of {n} words: {sentence[:60]} ..."


def wrong_words(names, repo=REPO):
    """names: paths of pages, patches and sources."""
    for name in names:
        text = (repo / name).read_text()
        if name == TERMS:
            continue
        if name.endswith(".md"):
            parts = [INLINE_CODE.sub("", CODE.sub("", text))]
        elif name.endswith(".patch"):
            parts = [text.partition("\n---\n")[0]]
        else:
            parts = TEXT.findall(text)
        for part in parts:
            plain = " ".join(part.split())
            for words, instead in FORBIDDEN:
                for found in words.finditer(plain):
                    context = plain[max(0, found.start() - 25) : found.end() + 25]
                    yield f"{name}: '{found.group()}' in '{context}'; write: {instead}"
