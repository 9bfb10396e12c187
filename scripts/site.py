"""Lays out the manual for mkdocs: site.py FOLDER [ROOT] writes FOLDER/mkdocs.yml and FOLDER/pages.

The pages are the repository's documents at their own paths, with the files that they link to. A
link to something that is no file, such as a folder, becomes plain text: a site has no such page.
"""

import json
import pathlib
import re
import shutil
import sys

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
# Names stay whole in tables, which scroll where they are wider than the page. Links stand out in
# the dark, too.
STYLE = """.md-typeset td:first-child code { white-space: nowrap; word-break: normal; }
.md-typeset code { word-break: normal; overflow-wrap: anywhere; }
[data-md-color-scheme="slate"] { --md-typeset-a-color: #80cbc4; }
"""
CHAPTERS = {
    "Begin": ["README.md", "docs/tour-*.md", "docs/limits.md"],
    "Use": """docs/verdict.md docs/problems.md docs/candidate-abi.md docs/run.md docs/score.md
        docs/formats.md docs/claims.md docs/archive.md docs/audit.md docs/model.md docs/ladder.md
        docs/peak.md docs/python.md""".split(),
    "Search and train": """docs/search.md docs/proposers.md docs/prompts.md docs/feedback.md
        docs/env.md docs/datasets.md docs/mine.md docs/worker.md docs/mcp.md AGENTS.md
        skills/*/SKILL.md""".split(),
    "Teach and serve": """docs/worklog.md docs/class.md docs/serve.md docs/cluster.md
        docs/database.md docs/scale.md docs/containers.md""".split(),
    "Trust": """docs/measurement.md docs/threats.md docs/exploits.md docs/confusion.md
        docs/sandbox.md docs/protocol.md""".split(),
    "Develop": ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md", "CHANGELOG.md"],
    "Examples": ["kernels/README.md", "kernels/**/README.md", "examples/*/README.md"],
}


def title(path):
    """The first heading of a page, else its name."""
    heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1] if heading else path.stem


def chapters(root):
    """{chapter: [path, ...]}, each page once, at its first chapter."""
    seen, found = set(), {}
    for chapter, patterns in CHAPTERS.items():
        pages = [page for pattern in patterns for page in sorted(root.glob(pattern))]
        found[chapter] = [page for page in dict.fromkeys(pages) if page not in seen]
        seen.update(found[chapter])
    return found


def lay_out(root, pages, target):
    """Copies the pages, and all that they link to, link by link."""
    waiting, done = list(pages), set()
    while waiting:
        page = waiting.pop()
        if page in done:
            continue
        done.add(page)
        copy = target / page.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copyfile(page, copy)
            continue

        def kept(match, page=page):
            image, text, link = match.groups()
            if re.match(r"[a-z]+:|#", link):
                return match[0]
            path, _, anchor = link.partition("#")
            linked = (page.parent / path).resolve()
            if not linked.is_file() or root not in linked.parents:
                return text
            waiting.append(linked)
            return match[0]

        copy.write_text(LINK.sub(kept, page.read_text(encoding="utf-8")), encoding="utf-8")


def main(folder, root=pathlib.Path(__file__).resolve().parents[1]):
    folder, root = pathlib.Path(folder), pathlib.Path(root).resolve()
    found = chapters(root)
    lay_out(root, [page for pages in found.values() for page in pages], folder / "pages")
    nav = [
        {chapter: [{title(page): page.relative_to(root).as_posix()} for page in pages]}
        for chapter, pages in found.items()
        if pages
    ]
    (folder / "pages" / "style.css").write_text(STYLE, encoding="utf-8")
    settings = {
        "site_name": "Assay",
        "site_description": "Judge of compute kernels",
        "docs_dir": "pages",
        # It can be read from a folder; its search needs a server, such as python3 -m http.server.
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            # As the reader's system has it, and by a switch.
            "palette": [
                {
                    "media": f"(prefers-color-scheme: {light})",
                    "scheme": scheme,
                    "primary": "blue grey",
                    "accent": "teal",
                    "toggle": {"icon": f"material/weather-{icon}", "name": f"Read it {other}"},
                }
                for light, scheme, icon, other in (
                    ("light", "default", "sunny", "dark"),
                    ("dark", "slate", "night", "light"),
                )
            ],
            "features": ["navigation.sections"],
        },
        "extra": {"homepage": "index.html"},  # "." is a folder's list where no server is
        "extra_css": ["style.css"],
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True}}],
        "nav": nav,
    }
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
