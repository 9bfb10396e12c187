"""Prints CHANGELOG.md as Debian's changelog: debian_changelog.py CHANGELOG.md CONTACT.

An entry has the bullets of its version, one paragraph each. The newest version may have the word
'unreleased' in place of a date.
"""

import datetime
import os
import re
import sys
import textwrap

WIDTH = 78


def entries(text):
    """(version, date or None, lines) of each heading '## [VERSION] - DATE', newest first."""
    found = []
    for line in text.splitlines():
        heading = re.match(r"## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d|unreleased)$", line)
        if heading:
            found.append((heading[1], None if heading[2] == "unreleased" else heading[2], []))
        elif found:
            found[-1][2].append(line)
    return found


def bullets(lines):
    """The paragraphs that begin with '- ', their lines joined."""
    found = []
    for line in lines:
        if line.startswith("- "):
            found.append(line[2:].strip())
        elif found and line.startswith("  "):
            found[-1] += " " + line.strip()
    return found


def stamp(date):
    """The date in Debian's form: noon of the day, or the time that the build is told."""
    if date:
        time = datetime.datetime.fromisoformat(date + "T12:00:00+00:00")
    else:
        seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
        time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return time.strftime("%a, %d %b %Y %H:%M:%S +0000")


def main(path, contact):
    with open(path, encoding="utf-8") as file:
        found = entries(file.read())
    if not found:
        sys.exit(f"{path}: no heading '## [1.2.3] - unreleased': write one for this version")
    for version, date, lines in found:
        where = "bookworm" if date else "UNRELEASED"
        print(f"assay ({version}) {where}; urgency=medium\n")
        for bullet in bullets(lines):
            print(textwrap.fill(bullet, WIDTH, initial_indent="  * ", subsequent_indent="    "))
        print(f"\n -- {contact}  {stamp(date)}\n")


main(*sys.argv[1:])
