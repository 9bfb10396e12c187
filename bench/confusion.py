#!/usr/bin/env python3
"""A table of confusion: what the judge says of kernels that others have called cheats, honest or
wrong. Rows are labels, columns the outcomes, by corpus:

    bench/confusion.py --out ROWS.jsonl --corpus assay --corpus gpuemu=CHECKOUT ... [-- --budget 6]
    bench/confusion.py --table ROWS.jsonl ...
    bench/confusion.py --device cuda --pack FOLDER --corpus gpuemu=CHECKOUT ...

Corpora are bench/confusion_corpora.py's; `assay` is this repository's own, tests/exploits. Of the
others a checkout is named. Words after `--` go to `assay judge` for these; the files of `assay`
say theirs themselves. A row a judgement is appended to --out. What has a row there is not judged
again: the same command goes on where a run was stopped. What needs a GPU is counted and not judged
on a CPU. A cheat of which too little was seen is judged again for longer, as in scripts/exploits.
$ASSAY_BINARY names the judge.

--pack judges nothing: FOLDER is then all that another machine needs, with --corpus packed=FOLDER.
"""
import argparse
import collections
import contextlib
import io
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "exploits"), str(ROOT / "bench")]

import rows
from cases import CORRECT, OUTCOMES
from claims import is_for_another_card, spread
from confusion_corpora import CHEAT, HONEST, LABELS, NEEDS_GPU, READERS, WRONG, Request, pack
from corpus_runs import judge_group
from judge_cases import broke_by_itself, groups, headline, hint_of
from lanes import Lane
from raw_results import gpu, machine
from run_speed import short

CASES_A_CALL = 8  # the rows of a call are written as it ends
OWN_ERROR, OTHER_CARD, NO_VERDICT, LEFT_OUT = (
    "stopped by an error of its own",
    "for another card",
    "no verdict",
    "left out",
)
COLUMNS = OUTCOMES + (OWN_ERROR, OTHER_CARD, NO_VERDICT, NEEDS_GPU, LEFT_OUT)


def column_of(row):
    """The column that counts a row."""
    if reason := row.get("left_out"):
        return reason if reason == NEEDS_GPU else LEFT_OUT
    if is_for_another_card(row["why"]):
        return OTHER_CARD
    return OWN_ERROR if row["own_error"] else row["outcome"] or NO_VERDICT


def row_of(entry, device, verdict, said):
    """A row of raw results. `said`: what a judge printed that gave no verdict."""
    row = {"corpus": entry.corpus, "name": entry.name, "label": entry.label, "said": entry.said}
    row["device"] = device
    if entry.left_out:
        return row | {"left_out": entry.left_out}
    row["machine"] = machine()
    if device == "cuda":
        row["gpu"] = gpu()
    if verdict is None:
        lines = said.strip().splitlines() or ["the judge said nothing"]
        return row | {"outcome": None, "rule": None, "why": short(lines[-1]), "own_error": False}
    speed = headline(verdict)
    return row | {
        "outcome": verdict["outcome"],
        "rule": verdict["foul"]["rule"] if verdict["foul"] else None,
        "why": short(hint_of(verdict) or ""),
        "own_error": entry.label != HONEST and broke_by_itself(entry.case, verdict),
        "speedup": speed.get("speedup"),
        "ci": speed.get("ci"),
        "pairs": speed.get("pairs"),
        "options": entry.case.options,
        "seconds": (verdict.get("cost") or {}).get("total_s"),
    }


def sampled(entries, count):
    """At most `count` judged entries a corpus and label, spread evenly; all that are left out."""
    found = collections.defaultdict(list)
    for entry in entries:
        found["left out" if entry.left_out else (entry.corpus, entry.label)].append(entry)
    left = found.pop("left out", [])
    return left + [entry for each in found.values() for entry in spread(each, count)]


def key_of(row):
    return row["corpus"], row["name"], row["device"]


def judge(entries, device, out, stop_at):
    """Judges what has no row yet, until `stop_at` of the monotonic clock [s]. Returns how many of
    the entries have no row then.
    """
    known = {key_of(row) for row in rows.read(out)}
    todo = [each for each in entries if (each.corpus, each.name, device) not in known]
    by_case = {}
    for entry in todo:
        if entry.left_out:
            rows.append(out, row_of(entry, device, None, ""))
        else:
            by_case[id(entry.case)] = entry
    left = len(by_case)
    for group in groups([entry.case for entry in by_case.values()]):
        for begin in range(0, len(group), CASES_A_CALL):
            if time.monotonic() >= stop_at:
                return left
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                judged = judge_group(group[begin : begin + CASES_A_CALL], Lane(), stop_at)
            for case, verdict in judged:
                row = row_of(by_case[id(case)], device, verdict, printed.getvalue())
                rows.append(out, row)
                said = row["outcome"] or NO_VERDICT
                print(f"{row['corpus']} {row['label']} {row['name']}: {said}", flush=True)
                left -= 1
    return left


def last_rows(found):
    """Of several rows of a file and a device the last."""
    return list({key_of(row): row for row in found}.values())


def table(found):
    """The table in Markdown."""
    counts = collections.Counter((row["corpus"], row["label"], column_of(row)) for row in found)
    columns = [each for each in COLUMNS if any(column == each for _, _, column in counts)]
    heads = ["corpus", "label", "files", *(name.replace("_", " ") for name in columns)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for corpus in dict.fromkeys(row["corpus"] for row in found):
        for label in (*LABELS, None):
            cells = [counts[corpus, label, column] for column in columns]
            if any(cells):
                shown = [corpus, label or "none of these", sum(cells), *(n or "" for n in cells)]
                lines.append(f"| {' | '.join(map(str, shown))} |")
    return "\n".join(lines)


def cell(text):
    return text.replace("|", "\\|")


def line_of(row):
    """A file by its name, with what was found."""
    name = f"- `{row['corpus']}` {row['name']} ({row['said']})"
    if row.get("outcome") == "faster":
        ends = [end for end in row["ci"] or () if end is not None]
        interval = f", {ends[0]:.2f} to {ends[-1]:.2f}" if ends else ""
        return f"{name}: {row['speedup']:.2f}x{interval}"
    words = [row["rule"] or column_of(row).replace("_", " "), row["why"]]
    return cell(f"{name}: {': '.join(filter(None, words))}")


def page(found):
    """The table, and the names of what is not as its label says."""
    found = last_rows(found)
    faster = [row for row in found if row.get("outcome") == "faster"]
    judged = [row for row in found if not row.get("left_out")]
    refused = [r for r in judged if r["label"] == HONEST and r["outcome"] not in CORRECT]
    own_error = [row for row in judged if column_of(row) == OWN_ERROR]
    lists = {
        "Cheats that are faster": [row for row in faster if row["label"] == CHEAT],
        "Wrong ones that are faster": [row for row in faster if row["label"] == WRONG],
        "Honest ones that are refused, or have no verdict": refused,
        "Stopped by an error of their own, so not caught": own_error,
    }
    lines = [table(found)]
    for title, of_list in lists.items():
        lines += ["", f"{title}: {len(of_list) or 'none'}", ""][: 3 if of_list else 2]
        lines += map(line_of, of_list)
    why = collections.Counter(
        (row["corpus"], row["left_out"]) for row in found if column_of(row) == LEFT_OUT
    )
    if why:
        lines += ["", "Left out:", ""]
        lines += [f"- `{corpus}`: {count} {reason}" for (corpus, reason), count in why.items()]
    return "\n".join(lines)


def entries_of(arguments, more, scratch):
    """All entries of the corpora, or a sample. ValueError: one cannot be read."""
    entries = []
    for text in arguments.corpus:
        name, _, folder = text.partition("=")
        if arguments.pack and name in ("assay", "packed"):
            raise ValueError(f"--corpus {text} has nothing to pack")
        if name not in READERS or bool(folder) == (name == "assay"):
            known = ", ".join(each for each in READERS if each != "assay")
            raise ValueError(f"--corpus {text}: it is assay, or NAME=FOLDER with NAME of {known}")
        place = pathlib.Path(folder).resolve() if folder else None
        request = Request(place, scratch / name, arguments.device, tuple(more))
        entries += READERS[name](request)
    return sampled(entries, arguments.sample) if arguments.sample else entries


def main(words):
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", action="append", default=[], metavar="NAME[=FOLDER]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=pathlib.Path, help="JSON lines; appended to")
    parser.add_argument("--sample", type=int, help="at most so many files a corpus and label")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER", help="a new one")
    parser.add_argument("--table", type=pathlib.Path, nargs="+", help="print the table of these")
    arguments, more = parser.parse_args(words[:cut]), words[cut + 1 :]
    if arguments.table:
        print(page([row for path in arguments.table for row in rows.read(path)]))
        return
    if not arguments.corpus or bool(arguments.out) == bool(arguments.pack):
        parser.error("name corpora, and --out or --pack; or --table")
    end = time.monotonic() + 60 * arguments.minutes
    try:
        if arguments.pack:
            arguments.pack.mkdir(parents=True)
            pack(entries_of(arguments, more, arguments.pack.resolve()), arguments.pack.resolve())
            return
        with tempfile.TemporaryDirectory(prefix="confusion-") as temporary:
            entries = entries_of(arguments, more, pathlib.Path(temporary))
            left = judge(entries, arguments.device, arguments.out, end)
    except (OSError, ValueError) as error:
        sys.exit(f"confusion: {error}")
    print(page(rows.read(arguments.out)))
    if left:
        print(f"\n{left} files are left for the same command")


if __name__ == "__main__":
    main(sys.argv[1:])
