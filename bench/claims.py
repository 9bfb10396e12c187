#!/usr/bin/env python3
"""Judges published kernels again: what was claimed of them, and what stands.

CORPORA holds checkouts, each under its format's name (docs/formats.md): cuda-l1, cuda-l2,
robust-kbench, kernelbench-hard. Each is imported, and some of its candidates are picked into
CORPORA/picked: claims spread evenly over the corpus, all answers that a reader called a cheat, and
twice as many that he called clean. They are judged against eager PyTorch by `assay run`:

    bench/claims.py corpora --device cuda --out claims.jsonl --page claims.md

Each gets a short look first. Those that are unsettled, or prepare or keep weights of their own, are
looked at again for longer, with weights as their constructors make them (--weights constructed): so
their authors measured them.

--pick-only ends before the judgement; CORPORA/picked is then all that another machine needs.
A row a kernel goes to --out, which is written anew; what was judged before is not judged again,
so an interrupted command goes on. The page is made of the rows alone, also without a judgement:

    bench/claims.py --rows claims.jsonl --page claims.md

Exit code 1: nothing was judged.

A claim is `certified` if the kernel is right and its speedup is at least the claimed one, within
the interval; `refuted` if it is wrong, breaks a rule or is slower than claimed; else `unsettled`.
Labels make a confusion matrix: whether a cheat was called faster, an honest kernel refused.
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from rows import append, judge_commit, read

# A format's import begins at this path of its checkout; so many of its claims are judged.
Corpus = collections.namedtuple("Corpus", "path claims")
CORPORA = {
    "kernelbench-hard": Corpus("benchmarks/hard/problems-h100", 0),
    "cuda-l1": Corpus("optimized_cuda_code/h100.json", 40),
    "cuda-l2": Corpus("kernels/h100_F32F16F16F32", 16),
    "robust-kbench": Corpus("", 9),
}
# The shape of a problem that is judged: the first, but for those whose first takes gigabytes.
SHAPES = {"06_sonic_moe_swiglu": 2}
# robust-kbench shows its kernels as improvements, without a size: they claim to be faster.
FASTER_AT_ALL = {"robust-kbench": 1.0}
CHEAT, HONEST = "reward_hack", "clean"
REFUSED = ("wrong", "foul")
# Advice of a message, and output of a compiler with paths of another machine.
ADVICE = re.compile(r"(; |: )`?--(weights|precision|budget).*|: RuntimeError: Error building.*")
# Of a page, what lies between these lines is written anew.
BEGIN, END = "<!-- claims: generated -->\n", "<!-- end -->\n"
COUNTED = ("faster", "correct, not faster", "refused", "no verdict")


def spread(items, count):
    """`count` of the items, evenly; all where there are no more."""
    if len(items) <= count:
        return items
    return [items[index * len(items) // count] for index in range(count)]


def may_change(verdict):
    """Whether a longer look, with weights as constructed, can come to another end."""
    if verdict["outcome"] == "wrong":
        return (verdict.get("correctness") or {}).get("right_with_weights") is not None
    return verdict["outcome"] in ("unsettled", "weights_differ")


def pick(rows, claims):
    """The lines of an import's origin.jsonl that are judged."""
    one = [
        row
        for row in rows
        if row["origin"].get("shape", 1) == SHAPES.get(row["origin"].get("problem"), 1)
    ]
    cheats = [row for row in one if row["origin"].get("label") == CHEAT]
    honest = [row for row in one if row["origin"].get("label") == HONEST]
    labelled = cheats + spread(honest, 2 * len(cheats))
    return spread([row for row in one if "label" not in row["origin"]], claims) + labelled


def keep(imported, folder, rows):
    """Copies the candidates of these rows, and their problems, into a folder for `assay run`."""
    for name in sorted({row[key] for row in rows for key in ("candidate", "problem")}):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(imported / name, folder / name)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "origin.jsonl").write_text(text)
    for row in rows:
        row.pop("origin")
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def prepare(arguments):
    """The folders of picked candidates, one a format; made where there are none."""
    folders = []
    for kind, corpus in CORPORA.items():
        folder = arguments.corpora / "picked" / kind
        checkout = arguments.corpora / kind
        if not folder.exists() and checkout.exists():
            with tempfile.TemporaryDirectory() as scratch:
                imported = pathlib.Path(scratch) / kind
                command = [arguments.program, "import", kind, checkout / corpus.path]
                command += ["-o", imported]
                if subprocess.run([str(word) for word in command]).returncode != 0:
                    sys.exit(f"{kind} was not imported")
                keep(imported, folder, pick(read(imported / "origin.jsonl"), corpus.claims))
        if folder.exists():
            folders.append(folder)
            print(f"{kind}: {len(read(folder / 'manifest.jsonl'))} picked", flush=True)
    return folders


def beside_eager(verdict):
    """The speedup and its interval; null where there are none."""
    speed = verdict.get("speed") or {}
    eager = speed.get("baselines", {}).get("eager", {})
    ci = eager.get("ci")
    return {"speedup": eager.get("speedup"), "ci": ci if ci and ci[0] is not None else None}


def is_for_another_card(message):
    return "no kernel image is available" in message


def conclusion(claimed, verdict):
    """certified, refuted or unsettled, of a claimed speedup, and why."""
    outcome = verdict["outcome"]
    eager = beside_eager(verdict)
    if is_for_another_card(verdict["message"]):
        return "unsettled", "built for another card"
    if may_change(verdict):
        return "unsettled", verdict["message"]
    low, high = eager["ci"] or (None, None)
    if outcome in REFUSED or (outcome == "slower" and claimed >= 1):
        return "refuted", verdict["message"]
    if low is None:
        return "unsettled", verdict["message"]
    if high < claimed:
        return "refuted", f"{eager['speedup']:.2f} instead of {claimed:.2f}"
    if low > claimed or outcome == "faster":
        return "certified", f"{eager['speedup']:.2f} where {claimed:.2f} was claimed"
    return "unsettled", f"{low:.2f} to {high:.2f}"


def counted(outcome, message):
    """The column of the confusion matrix. One that was built for another card was not judged."""
    if is_for_another_card(message):
        return "no verdict"
    if outcome == "faster":
        return "faster"
    if outcome in REFUSED:
        return "refused"
    return "correct, not faster" if outcome in ("tie", "slower", "not_faster") else "no verdict"


def reason(row):
    """Why a claim is refuted, in a few words."""
    if "errors are as large as" in row["message"]:
        return "arithmetic of a lower precision than the problem's"
    if row["outcome"] in REFUSED:
        return "wrong, or against the rules"
    return "slower than claimed" if (row["speedup"] or 0) > 1 else "no faster than PyTorch"


def claim_of(origin):
    """The claimed speedup; None: nothing is claimed."""
    size = origin.get("claimed_speedup")
    return FASTER_AT_ALL.get(origin["format"]) if size is None else size


def row_of(origin, verdict):
    eager = beside_eager(verdict)
    row = {"format": origin["format"], "origin": origin, "outcome": verdict["outcome"]}
    row |= {"message": verdict["message"], "hash": verdict["candidate"]["hash"]}
    row |= {"speedup": eager["speedup"], "ci": eager["ci"], "seed": verdict["seed"]}
    row["judged"] = verdict["created"]
    row |= {"weights": verdict["problem"]["weights"], "device": verdict["machine"].get("gpu")}
    row["claimed"] = claim_of(origin)
    if row["claimed"] is not None:
        row["conclusion"], row["why"] = conclusion(row["claimed"], verdict)
    return row


def look(arguments, manifest, results, *options):
    """The verdicts of a manifest by candidate; whether its run was interrupted."""
    command = [arguments.program, "run", manifest, "--results", results, "--no-save", "-q"]
    command += ["--devices", arguments.device, *options]
    interrupted = False
    try:
        subprocess.run([str(word) for word in command], check=False)
    except KeyboardInterrupt:
        interrupted = True
    lines = read(results / "verdicts.jsonl") if (results / "verdicts.jsonl").exists() else []
    verdicts = {
        pathlib.PurePath(line["candidate"]).name: line["verdict"]
        for line in lines
        if "verdict" in line  # a row with an error has none
    }
    return verdicts, interrupted


def judge(arguments, folder):
    """Appends the rows of a folder's candidates. Returns whether a run was interrupted."""
    budget = ("--budget", arguments.first_budget)
    verdicts, interrupted = look(
        arguments, folder / "manifest.jsonl", folder / "results", *budget
    )
    again = [
        row
        for row in read(folder / "manifest.jsonl")
        if may_change(verdicts.get(pathlib.PurePath(row["candidate"]).name, {"outcome": None}))
    ]
    if again and not interrupted:
        manifest = folder / "again.jsonl"
        manifest.write_text("".join(json.dumps(row) + "\n" for row in again))
        options = ("--weights", "constructed", "--budget", arguments.budget)
        more, interrupted = look(arguments, manifest, folder / "results_again", *options)
        verdicts |= more
    for row in read(folder / "origin.jsonl"):
        verdict = verdicts.get(pathlib.PurePath(row["candidate"]).name)
        if verdict:
            append(arguments.out, row_of(row["origin"], verdict))
    return interrupted


def name_of(row):
    origin = row["origin"]
    for key in ("run", "mnk", "task"):
        if key in origin:
            return str(origin[key])
    return f"level{origin['level_id']}_{origin['task_id']}" if "level_id" in origin else "?"


def matrix(rows):
    lines = [f"| label | {' | '.join(COUNTED)} |", "|---|" + "---|" * len(COUNTED)]
    for label, name in ((CHEAT, "cheat"), (HONEST, "honest")):
        of_label = [row for row in rows if row["origin"].get("label") == label]
        found = collections.Counter(counted(row["outcome"], row["message"]) for row in of_label)
        columns = [found[each] for each in COUNTED]
        lines.append(f"| {name} ({len(of_label)}) | {' | '.join(map(str, columns))} |")
    return lines


def summary(rows):
    ends = ("certified", "refuted", "unsettled")
    lines = [f"| corpus | claims | {' | '.join(ends)} |", "|---|---|" + "---|" * len(ends)]
    for kind in CORPORA:
        claims = [row for row in rows if row["format"] == kind and row["claimed"] is not None]
        if claims:
            counts = [sum(row["conclusion"] == end for row in claims) for end in ends]
            lines.append(f"| {kind} | {len(claims)} | {' | '.join(map(str, counts))} |")
    return lines


def reasons(rows):
    counts = collections.Counter(
        reason(row) for row in rows if row.get("conclusion") == "refuted"
    )
    lines = ["| why a claim is refuted | claims |", "|---|---|"]
    return lines + [f"| {why} | {count} |" for why, count in counts.most_common()]


def table(rows):
    heads = ("corpus", "kernel", "claimed", "measured", "outcome", "conclusion")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in sorted(rows, key=lambda each: (each["format"], name_of(each))):
        claimed = f"{row['claimed']:.2f}" if row["claimed"] is not None else "-"
        ci = row["ci"]
        measured = f"{row['speedup']:.2f} ({ci[0]:.2f} to {ci[1]:.2f})" if ci else "-"
        said = row["origin"].get("label") or row.get("conclusion") or "-"
        why = ADVICE.sub("", row.get("why") or row["message"])
        why = why.replace("|", "\\|").replace("\n", " ")[:160]
        kernel = name_of(row)
        lines.append(
            f"| {row['format']} | {kernel} | {claimed} | {measured} | {row['outcome']} "
            f"| {said}: {why} |"
        )
    return lines


def page(rows, raw):
    cards = sorted({row["device"] or "a CPU" for row in rows})
    return "\n".join(
        [
            f"{len(rows)} published kernels, judged on {' and '.join(cards)} by `bench/claims.py` "
            f"against eager PyTorch. Raw results: `{raw}`.",
            "",
            "A claim is certified if the kernel is right and reaches the claimed speedup within "
            "the interval; refuted if it is wrong, breaks a rule or stays below; else unsettled.",
            "",
            *summary(rows),
            "",
            *reasons(rows),
            "",
            "Readers of KernelBench-Hard called these cheats or clean:",
            "",
            *matrix(rows),
            "",
            *table(rows),
        ]
    )


def write_page(arguments, rows, raw):
    if arguments.page and rows:
        text = "# Claims, judged again\n\n" + BEGIN + END
        if arguments.page.exists():
            text = arguments.page.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        made = before + BEGIN + page(rows, raw) + "\n" + END + rest.partition(END)[2]
        arguments.page.write_text(made.rstrip("\n") + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=pathlib.Path, nargs="?")
    parser.add_argument("--rows", type=pathlib.Path, help="make the page of these rows")
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--first-budget", type=float, default=4, help="seconds of a first gate 2")
    parser.add_argument("--budget", type=float, default=25, help="seconds of a second gate 2")
    parser.add_argument("--pick-only", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default="claims.jsonl")
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    if (arguments.corpora is None) == (arguments.rows is None):
        parser.error("name the folder of corpora, or --rows")
    if arguments.rows and not arguments.rows.exists():
        parser.error(f"{arguments.rows} is not there")
    if arguments.rows:
        write_page(arguments, read(arguments.rows), arguments.rows)
        return 0

    folders = prepare(arguments)
    if arguments.pick_only:
        return 0
    arguments.out.unlink(missing_ok=True)
    for folder in folders:
        if judge(arguments, folder):
            break
    rows = read(arguments.out)
    print(f"{len(rows)} rows of judge {judge_commit()}")
    write_page(arguments, rows, arguments.out)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
