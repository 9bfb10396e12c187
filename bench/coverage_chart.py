"""Draws the curves of bench/coverage_replay as an SVG picture.

    bench/coverage_chart.py bench/results/cpu-2core/coverage.jsonl docs/images/coverage.svg
"""

import json
import pathlib
import sys

LEFT, RIGHT, TOP, BOTTOM = 66, 736, 96, 336
INK, FAINT, GRID = "#24292f", "#57606a", "#e3e7eb"
LINES = (  # name, colour, dashes, words
    ("common", "#c4500b", "8 5", "1 - (1 - p)^k, one common chance"),
    ("fitted", "#14548c", "", "fit with a share out of reach"),
    ("measured", INK, "2 4", "measured, mean of the seeds"),
)


def at_x(k, last):
    return LEFT + (k - 1) / (last - 1) * (RIGHT - LEFT)


def at_y(share):
    return BOTTOM - share * (BOTTOM - TOP)


def text(x, y, anchor, size, colour, words):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{colour}">{words}</text>'
    )


def draw(row):
    curves, last = row["curves"], row["curves"][-1]["k"]
    end = curves[-1]
    title = f"Coverage by attempts: {len(row['bars'])} bars of speed, {row['variants']} variants"
    described = (
        f"Three lines over 1 to {last} attempts. At {last} a common chance foretells "
        f"{end['common']:.0%}, the fit {end['fitted']:.0%}; measured are {end['measured']:.0%}."
    )
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 400" width="760" height="400" '
        f'font-family="sans-serif" role="img" aria-label="{described}">',
        '<rect width="760" height="400" fill="#ffffff"/>',
        text(24, 34, "start", 18, INK, title),
    ]
    for tenths in range(0, 11, 2):
        y = at_y(tenths / 10)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="{GRID}"/>')
        parts.append(text(LEFT - 8, y + 4, "end", 12, INK, f"{10 * tenths}%"))
    for k in (1, 20, 40, 60, 80, last):
        parts.append(text(at_x(k, last), BOTTOM + 18, "middle", 12, INK, str(k)))
    reach = at_y(1 - row["out_of_reach_true"])
    parts.append(f'<path d="M{LEFT} {reach:.1f}H{RIGHT}" stroke="{FAINT}" stroke-dasharray="1 3"/>')
    parts.append(text(RIGHT, reach - 5, "end", 12, FAINT, "all that any variant reaches"))
    for place, (name, colour, dashes, words) in enumerate(LINES):
        points = " ".join(f"{at_x(p['k'], last):.1f},{at_y(p[name]):.1f}" for p in curves)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        line = f'stroke="{colour}" stroke-width="3"{dashed}'
        parts.append(f'<polyline points="{points}" fill="none" {line}/>')
        x = LEFT + 235 * place
        parts.append(f'<path d="M{x} 66H{x + 26}" {line}/>')
        parts.append(text(x + 32, 70, "start", 12, INK, words))
    parts.append(f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="{INK}"/>')
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 40, "middle", 12, FAINT, "attempts"))
    return "\n".join([*parts, "</svg>", ""])


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    row = json.loads(source.read_text(encoding="utf-8").splitlines()[-1])
    target.write_text(draw(row), encoding="utf-8")


if __name__ == "__main__":
    main()
