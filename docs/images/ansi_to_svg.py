#!/usr/bin/env python3
"""Turns a coloured card into an SVG picture of a terminal.

Usage: print_sample_cards --colour faster | docs/images/ansi_to_svg.py > docs/images/card.svg

Box-drawing characters and bars become lines and rectangles, so the picture does not depend on the
reader's font.
"""
import html
import re
import sys

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 19, 16
COLOURS = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341"}
PLAIN, FAINT, STRONG, BACKGROUND = "#c9d1d9", "#6e7681", "#f0f6fc", "#0d1117"
# Which arms each character has: left, right, up, down.
ARMS = {"─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "├": "rud", "┤": "lud", "└": "ru", "┘": "lu"}


def spans_of(line):
    """Yields (codes, text) for each run of one style in a line with SGR codes."""
    codes = frozenset()
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            codes = frozenset(part[2:-1].split(";")) - {"0", ""}
        elif part:
            yield codes, part


def colour_of(codes):
    for code, colour in COLOURS.items():
        if code in codes:
            return colour
    return FAINT if "2" in codes else STRONG if "1" in codes else PLAIN


def cell(character, x, y, colour):
    """A box-drawing character or a bar as a shape; None for ordinary text."""
    if character == "█" or character == "▌":
        width = CELL_WIDTH if character == "█" else CELL_WIDTH / 2
        return (
            f'<rect x="{x:.1f}" y="{y + 4:.1f}" width="{width:.1f}" '
            f'height="{CELL_HEIGHT - 8}" fill="{colour}"/>'
        )
    if character not in ARMS:
        return None
    middle_x, middle_y = x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2
    ends = {
        "l": (x, middle_y),
        "r": (x + CELL_WIDTH, middle_y),
        "u": (middle_x, y),
        "d": (middle_x, y + CELL_HEIGHT),
    }
    path = "".join(
        f"M{middle_x:.1f} {middle_y:.1f}L{ends[arm][0]:.1f} {ends[arm][1]:.1f}"
        for arm in ARMS[character]
    )
    return f'<path d="{path}" stroke="{colour}"/>'


def merged(shapes):
    """Joins neighbouring rectangles and paths of one colour, which keeps the file small."""
    bars = {}
    paths = {}
    for shape in shapes:
        bar = re.match(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="(\d+)" fill="(.*)"/>', shape
        )
        if bar:
            x, y, width, height, colour = bar.groups()
            first, last = bars.get((y, height, colour), (float(x), 0))
            bars[y, height, colour] = (min(first, float(x)), max(last, float(x) + float(width)))
        else:
            path = re.match(r'<path d="(.*)" stroke="(.*)"/>', shape)
            paths[path.group(2)] = paths.get(path.group(2), "") + path.group(1)
    for (y, height, colour), (first, last) in bars.items():
        yield (
            f'<rect x="{first:.1f}" y="{y}" width="{last - first:.1f}" '
            f'height="{height}" fill="{colour}"/>'
        )
    for colour, path in paths.items():
        yield f'<path d="{path}" stroke="{colour}" shape-rendering="crispEdges"/>'


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    width, height = columns * CELL_WIDTH + 2 * MARGIN, len(lines) * CELL_HEIGHT + 2 * MARGIN
    shapes, texts = [], []
    for row, line in enumerate(lines):
        column = 0
        y = MARGIN + row * CELL_HEIGHT
        for codes, text in spans_of(line):
            colour = colour_of(codes)
            x = MARGIN + column * CELL_WIDTH
            if "7" in codes:
                texts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{len(text) * CELL_WIDTH:.1f}" '
                    f'height="{CELL_HEIGHT}" '
                    f'rx="3" fill="{colour}"/>'
                )
                colour = BACKGROUND
            for word in re.finditer(r"\S+(?: \S+)*", text):
                start = x + word.start() * CELL_WIDTH
                drawn = [
                    cell(letter, start + i * CELL_WIDTH, y, colour)
                    for i, letter in enumerate(word.group())
                ]
                shapes += [shape for shape in drawn if shape]
                if not any(drawn):
                    weight = ' font-weight="bold"' if "1" in codes else ""
                    texts.append(
                        f'<text x="{start:.1f}" y="{y + 14}" fill="{colour}"{weight} '
                        f'textLength="{len(word.group()) * CELL_WIDTH:.1f}">'
                        f"{html.escape(word.group())}</text>"
                    )
            column += len(text)
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="A verdict as Assay shows it in a terminal" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, DejaVu Sans Mono, monospace" '
        'font-size="14" '
        'fill="none" xml:space="preserve">'
    )
    print(f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>')
    print("\n".join([*merged(shapes), *texts]))
    print("</svg>")


if __name__ == "__main__":
    main()
