"""The card of a verdict for notebooks: one SVG, which needs nothing else and runs nothing."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from ._verdict import Speed, Verdict

_WIDTH = 640
_ROW = 20
_LEFT, _VALUES = 20, 150  # where labels and what they say begin
_LINE_CHARACTERS = 66
_LINES_MAX = 4

_GREEN, _AMBER, _RED = "#1a7f37", "#9a6700", "#cf222e"
_COLOURS: Dict[str, str] = {"faster": _GREEN, "correct": _GREEN}
_COLOURS.update(dict.fromkeys(("slower", "tie", "not_faster", "unsettled"), _AMBER))


class _Drawing:
    """Rows from top to bottom. All text is escaped here."""

    def __init__(self) -> None:
        self.parts: List[str] = []
        self.y = 0

    def text(self, x: float, words: str, style: str = "", anchor: str = "start") -> None:
        shown = "".join(c if c.isprintable() else " " for c in words)
        self.parts.append(
            f'<text x="{x:g}" y="{self.y}" text-anchor="{anchor}" {style}>{escape(shown)}</text>'
        )

    def row(self, label: str, words: str) -> None:
        """A label, and what it says, in at most a few lines."""
        self.text(_LEFT, label, 'fill="#59636e"')
        self.lines(_VALUES, words, _LINE_CHARACTERS)

    def lines(self, x: float, words: str, characters: int) -> None:
        lines = textwrap.wrap(words, characters)
        if len(lines) > _LINES_MAX:
            lines = [*lines[: _LINES_MAX - 1], lines[_LINES_MAX - 1][:-3] + " ..."]
        for line in lines:
            self.text(x, line)
            self.y += _ROW

    def shape(self, markup: str) -> None:
        self.parts.append(markup)


def time_of(time_us: Optional[float]) -> str:
    """A time with three digits and a unit that fits."""
    if time_us is None:
        return "no time"
    for unit, factor in (("s", 1e-6), ("ms", 1e-3)):
        if time_us * factor >= 1:
            return f"{time_us * factor:.3g} {unit}"
    return f"{time_us:.3g} \N{MICRO SIGN}s"


def number_of(value: Optional[float]) -> str:
    """A number with six digits, an integer with all."""
    if value is None:
        return "not finite"
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def html_of(verdict: Verdict) -> str:
    """Draws the verdict: outcome, both gates, and what to make of them."""
    drawing = _Drawing()
    colour = _COLOURS.get(verdict.outcome, _RED)
    word = verdict.outcome.replace("_", " ").upper()
    width = 20 + 11 * len(word)
    drawing.shape(f'<rect x="20" y="18" width="{width}" height="26" rx="4" fill="{colour}"/>')
    drawing.y = 36
    drawing.text(20 + width / 2, word, 'fill="#ffffff" font-weight="bold"', "middle")
    candidate = verdict.candidate.rsplit("/", 1)[-1]
    drawing.text(32 + width, f"{candidate}  \N{RIGHTWARDS ARROW}  {verdict.problem}")
    drawing.y = 70
    drawing.lines(_LEFT, verdict.message, _LINE_CHARACTERS + 20)
    drawing.y += 4
    if verdict.speed is not None and verdict.speed.speedup is not None:
        _speed(drawing, verdict.speed, colour)
    _facts(drawing, verdict)
    height = drawing.y
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-label="{escape(word)}: {escape(verdict.problem)}" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">'
        f'<rect x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="6" fill="#ffffff" '
        f'stroke="#d1d9e0"/>{"".join(drawing.parts)}</svg>'
    )


def _speed(drawing: _Drawing, speed: Speed, colour: str) -> None:
    drawing.row(
        "speed",
        f"{speed.speedup:.2f}x: {time_of(speed.time_us)} a call, {speed.baseline} "
        f"{time_of(speed.baseline_time_us)}, {speed.pairs} pairs",
    )
    low, high = speed.low, speed.high
    if not speed.speedup or not low or not high:
        return
    left, right = _VALUES, _WIDTH - 80
    ends = _axis(low, high)

    def place(ratio: float) -> float:
        share = (math.log(ratio) - math.log(ends[0])) / (math.log(ends[1]) - math.log(ends[0]))
        return left + (right - left) * share

    y = drawing.y - 5
    line = 'stroke="#d1d9e0"'
    drawing.shape(f'<path d="M{left} {y}H{right}" {line}/>')
    drawing.shape(f'<path d="M{place(1):.1f} {y - 7}v14" stroke="#59636e"/>')
    thick = max(3.0, place(high) - place(low))
    drawing.shape(
        f'<rect x="{place(low):.1f}" y="{y - 4}" width="{thick:.1f}" height="8" rx="2" '
        f'fill="{colour}"/>'
    )
    drawing.y += 18
    small = 'font-size="11" fill="#59636e"'
    drawing.text(place(1), "1x", small, "middle")
    if abs(place(speed.speedup) - place(1)) > 90:
        # Rounded outwards, as on the card of a terminal.
        least, most = math.floor(low * 100) / 100, math.ceil(high * 100) / 100
        words = f"between {least:.2f}x and {most:.2f}x"
        drawing.text(place(speed.speedup), words, small, "middle")
    drawing.y += 24


def _axis(low: float, high: float) -> Tuple[float, float]:
    """Ends of the logarithmic axis: both sides of 1, as far as the interval goes, and a margin."""
    reach = max(abs(math.log(low)), abs(math.log(high)), math.log(1.1)) * 1.3
    return math.exp(-reach), math.exp(reach)


def _facts(drawing: _Drawing, verdict: Verdict) -> None:
    right = verdict.correctness
    if right is not None:
        passed = f"passed, {right.calls_checked} calls checked" if right.passed else "failed"
        ratio = right.error_ratio
        drawing.row("correctness", passed + (f", error ratio {ratio:.2g}" if ratio else ""))
        wrong = right.first_mismatch
        if wrong is not None:
            where = ", ".join(map(str, wrong.index))
            found = f"is {number_of(wrong.got)}, expected {number_of(wrong.expected)}"
            drawing.row("first wrong", f"{wrong.output}[{where}] {found}")
        if right.hint and right.hint not in verdict.message:
            drawing.row("hint", right.hint)
    if verdict.foul is not None:
        drawing.row("rule", verdict.foul)
    if verdict.percent_of_peak is not None:
        drawing.row("of the peak", f"{verdict.percent_of_peak:.0f}%")
    if verdict.outcome == "build_failed" and verdict.log:
        drawing.row("log", verdict.log[:400])
