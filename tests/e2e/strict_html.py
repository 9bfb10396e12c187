"""Reads a page more strictly than any browser does: text, and tags of a known form. Whatever
comes back unescaped is a tag that is not known, an attribute that is not known, or a broken page.
"""
import base64
import hashlib
import html
import re

NAME = r"[a-z][a-z0-9-]*"
ATTRIBUTE = re.compile(rf'\s+({NAME})(?:="([^"<>]*)")?', re.I)
TAG = re.compile(rf'<(/?)({NAME})((?:\s+{NAME}(?:="[^"<>]*")?)*)\s*/?>', re.I)
# The comments that there may be, in a worklog's report: the Markdown library's, and the seal.
COMMENT = re.compile(
    r"<!-- (raw HTML omitted|rendered by assay worklog: [0-9a-f]{64} [0-9a-f]{64}) -->"
)

TAGS = set(
    "a article b body br button caption circle clippath code dd defs del desc details div dl"
    " dt em fieldset figcaption figure footer form g h1 h2 h3 h4 h5 head header hr html img"
    " input ins label legend li line link main meta nav noscript ol option output p path"
    " polygon polyline pre rect script section select small span strong style summary svg"
    " table tbody td text textarea th thead time title tr tspan ul".split()
)
ATTRIBUTES = set(
    "lang charset name content rel href class viewbox aria-hidden aria-label aria-current d cx cy r"
    " id method action type value for required maxlength minlength min max step role tabindex"
    " aria-describedby aria-labelledby aria-live scope colspan rowspan x y x1 x2 y1 y2 width height"
    " points selected checked open accept enctype rows cols spellcheck autocomplete datetime"
    " text-anchor pattern font-family font-weight transform title list readonly"
    " disabled hidden autocapitalize size src alt"
    " download aria-sort aria-pressed aria-expanded fill stroke start align xmlns clip-path"
    " http-equiv multiple placeholder dominant-baseline aria-invalid rx ry inputmode"
    " preserveaspectratio font-size stroke-width stroke-dasharray opacity style".split()
)
ENDLESS = set("meta link input img br hr".split())
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def hash_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


class Page:
    """A page that was read. `faults` says what is wrong with it, `text` what a reader sees."""

    def __init__(self, page, policy):
        self.faults, self.open, texts = [], [], []
        if not page.startswith("<!doctype html>"):
            self.faults.append("it begins with no document type")
        hidden = HIDDEN.search(page)
        if hidden:
            around = page[max(0, hidden.start() - 60) : hidden.end() + 20]
            self.faults.append(f"a hidden character: {around!r}")
        at = len("<!doctype html>")
        while at < len(page):
            end = page.find("<", at)
            end = len(page) if end < 0 else end
            texts.append(page[at:end])
            if end == len(page):
                break
            if comment := COMMENT.match(page, end):
                at = comment.end()
                continue
            tag = TAG.match(page, end)
            if not tag:
                self.faults.append(f"no tag: {page[end:end + 80]!r}")
                at = end + 1
                continue
            at = self.read_tag(tag, page, policy)
        if any(">" in text for text in texts):
            self.faults.append(f"a bracket: {[text for text in texts if '>' in text][:3]}")
        if self.open:
            self.faults.append(f"never closed: {self.open}")
        self.text = html.unescape("".join(texts))

    def read_tag(self, tag, page, policy):
        """Returns the place behind it."""
        closes, name, attributes = tag.group(1), tag.group(2).lower(), tag.group(3)
        if closes and (not self.open or self.open.pop() != name):
            self.faults.append(f"</{name}> closes nothing")
        if not closes and name not in ENDLESS and not tag.group(0).endswith("/>"):
            self.open.append(name)
        if name not in TAGS:
            self.faults.append(f"<{name}>")
        for attribute in ATTRIBUTE.finditer(attributes):
            self.check(name, attribute.group(1).lower(), html.unescape(attribute.group(2) or ""))
        if name not in ("script", "style") or closes:
            return tag.end()
        end = page.find(f"</{name}>", tag.end())
        if hash_of(page[tag.end() : end]) not in policy:
            self.faults.append(f"a {name} that the policy does not name: {page[tag.end():][:80]!r}")
        return end

    def check(self, tag, name, value):
        if name not in ATTRIBUTES and not name.startswith("data-"):
            self.faults.append(f"<{tag} {name}={value!r}>")
        if name in ("href", "src", "action") and value:
            own = re.match(r"[/#?](?![/\\])", value) or value == "/"
            icon = tag == "link" and value.startswith("data:image/svg+xml,")
            prose = tag == "a" and re.match("https?://|mailto:", value)
            if not (own or icon or prose):
                self.faults.append(f"<{tag} {name}={value!r}>")
        if name == "style" and "url" in value:
            self.faults.append(f"<{tag} {name}={value!r}>")
