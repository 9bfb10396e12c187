#!/usr/bin/env python3
"""How long `assay run` takes for a candidate, and KernelBench's own evaluation beside it. Both
parts append rows to one file of JSON lines, and `table` prints what they say:

    bench/run_speed.py copies --problems CHECKOUT FOLDER
    bench/run_speed.py kernelbench --problems CHECKOUT --out ROWS.jsonl
    bench/run_speed.py assay tests/answers --forms cuda --problems CHECKOUT --results FOLDER \\
        --out ROWS.jsonl -- --budget 6 --devices cuda:0
    bench/run_speed.py table ROWS.jsonl
    bench/run_speed.py agreement ROWS.jsonl

copies        writes a copy of each reference, which calls itself ModelNew, as a candidate
kernelbench   each candidate in a fresh process with caches of its own, as KernelBench's
              scripts/eval_from_generations.py judges a sample (bench/kernelbench_sample.py): a row
              has its wall seconds and its verdict
assay         one cold call of `assay run` over a folder, with a cache and a state folder of its
              own: a row has its wall seconds and outcomes, and each verdict one of its own. With
              --goes-on it judges what an earlier call left in the folder of results. Words after
              `--` go to `assay run`
agreement     a table of the candidates that both judged at the same sizes

Both have the problems at the sizes of --sizes. A constant is set in the file's syntax tree by the
judge's own code, in the problem and in a candidate that has it, too, before the clock starts. What
--minutes leaves out is printed and kept as a row.
"""
import argparse
import ast
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "host" / "python")]

import rows

ASSAY = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "assay"))
PYTHON = os.environ.get("ASSAY_PYTHON", sys.executable)
SAMPLE = ROOT / "bench" / "kernelbench_sample.py"
SIZES = ROOT / "scripts" / "kernelbench_sizes.toml"
ANSWERS = ROOT / "tests" / "answers"
NAME = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
CANDIDATES = [  # a matrix product, a softmax, a reduction, a convolution and a fused linear layer
    f"level_{level}_problem_{number}_sample_0_kernel.py"
    for level, number in ((1, 1), (1, 23), (1, 47), (1, 50), (2, 12))
]
KERNELBENCH_TIMEOUT_S = 180  # of its script
INTERRUPTED = 130  # exit code of `assay run`
STOP_S = 30  # what `assay run` has to end after SIGINT
ERROR_LENGTH_MAX = 400


def cards():
    """The names of this machine's GPUs."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        process = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return []
    return process.stdout.splitlines() if process.returncode == 0 else []


def common(arguments):
    """What each row says of where and how it was measured."""
    return {
        "sizes": arguments.sizes.name if arguments.sizes else None,
        "cores": len(os.sched_getaffinity(0)),
        "cards": cards(),
    }


def forms_of(folder):
    """{file name: form} of a folder with provenance.jsonl, {} of any other."""
    return {row["file"]: row["form"] for row in rows.read(folder / "provenance.jsonl")}


def problem_of(checkout, name):
    """The file of the problem that a candidate's name says. ValueError: there is none."""
    match = NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is not named level_L_problem_P_sample_S_kernel.py")
    level, number, _ = match.groups()
    for root in (checkout / "KernelBench", checkout):
        for path in sorted((root / f"level{level}").glob(f"{number}_*.py")):
            return path
    raise ValueError(f"{checkout} has no problem {number} of level {level}: name the checkout")


def sized(path, settings, every=False):
    """The file's text with its constants set; unchanged if it has none of them. With `every` it has
    to have all. ValueError says what is wrong.
    """
    from assay_host import problem  # it imports PyTorch, which the other parts do not need
    from assay_host.failure import Failure

    texts = {name: repr(value) for name, value in settings.items()}
    try:
        tree = problem.parse(str(path))
        if not (texts if every else texts.keys() & set(problem.constant_names(tree))):
            return path.read_text(encoding="utf-8")
        change = problem.apply_settings if every else problem.apply_known_settings
        return ast.unparse(change(tree, texts))
    except Failure as error:
        if every:
            raise ValueError(f"{path}: {error}") from error
        return path.read_text(encoding="utf-8")  # no Python: KernelBench's verdict says so


def cold(folder):
    """The environment, with empty caches in the folder."""
    names = {
        "CUDA_CACHE_PATH": "cuda",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "TORCH_EXTENSIONS_DIR": "extensions",
        "TRITON_CACHE_DIR": "triton",
        "XDG_CACHE_HOME": "cache",
        "XDG_STATE_HOME": "state",
        "XDG_DATA_HOME": "data",
    }
    return dict(os.environ, **{name: str(folder / part) for name, part in names.items()})


def left_out(arguments, part, names):
    """Prints and keeps what --minutes left out."""
    if names:
        print(f"left out by --minutes {arguments.minutes:g}: {', '.join(names)}", flush=True)
        rows.append(arguments.out, {"what": "left_out", "part": part, "candidates": names})


def run_sample(arguments, name, form, settings, end):
    """The row of a candidate by KernelBench's way; wall_s is without the wait for its turn. None:
    `end` came before its verdict.
    """
    seconds = end - time.monotonic()
    if seconds <= 0:
        return None
    problem = problem_of(arguments.problems, name)
    with tempfile.TemporaryDirectory(prefix="run-speed-") as temporary:
        folder = pathlib.Path(temporary)
        texts = {"problem.py": sized(problem, settings, every=True)}
        texts["candidate.py"] = sized(arguments.answers / name, settings)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        command = [PYTHON, SAMPLE, arguments.kernelbench or arguments.problems]
        command += [folder / file for file in texts]
        command += ["--build", folder / "build", "--out", folder / "row.json"]
        command += ["--turn", f"{arguments.out}.lock"]
        command += ["--backend", "triton" if form == "triton" else "cuda"]
        command += ["--arch", arguments.arch]
        limit_s = min(arguments.timeout, seconds)
        begin = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=cold(folder),
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if limit_s < arguments.timeout:
                return None
            ended = {"compiled": False, "correct": False, "error": "Evaluation timed out"}
        else:
            ended = read_ended(folder / "row.json", process.returncode, output)
        wall_s = round(time.monotonic() - begin - ended.get("parts", {}).get("waited_s", 0), 2)
    return {"candidate": name, "form": form, "set": settings, "wall_s": wall_s, **ended}


def read_ended(path, code, output):
    """What KernelBench's process has left. ValueError: KernelBench does not run here."""
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    end = output[-ERROR_LENGTH_MAX:]
    if code >= 0:  # exceptions of a candidate are verdicts
        raise ValueError(f"KernelBench's evaluation does not run here: {end}")
    error = f"signal {-code} ended the process: {end}"
    return {"compiled": False, "correct": False, "error": error}


def kernelbench(arguments):
    end = time.monotonic() + 60 * arguments.minutes
    table = tomllib.loads(arguments.sizes.read_text()) if arguments.sizes else {}
    forms = forms_of(arguments.answers)
    measured = common(arguments) | {"builds": arguments.builds}
    names = arguments.candidates or CANDIDATES
    for name in names:
        if not (arguments.answers / name).is_file():
            raise ValueError(f"{arguments.answers} has no {name}")

    def sample(name):
        problem = problem_of(arguments.problems, name)
        settings = table.get(problem.parent.name, {}).get(problem.stem, {})
        return run_sample(arguments, name, forms.get(name), settings, end)

    out = []
    with concurrent.futures.ThreadPoolExecutor(arguments.builds) as pool:
        samples = {pool.submit(sample, name): name for name in names}
        for ended in concurrent.futures.as_completed(samples):
            name, row = samples[ended], ended.result()
            if row is None:
                out.append(name)
                continue
            rows.append(arguments.out, {"what": "kernelbench", **measured, **row})
            said = {key: row.get(key) for key in ("compiled", "correct", "runtime_ms", "error")}
            print(f"{name}: {row['wall_s']:.1f} s, {json.dumps(said)}", flush=True)
    left_out(arguments, "kernelbench", [name for name in names if name in out])


def selection(folder, forms):
    """The candidates of these forms, and the number of their problems. ValueError: none."""
    known = forms_of(folder)
    if forms and not known:
        raise ValueError(f"--forms needs {folder / 'provenance.jsonl'}, which has a form a file")
    names = sorted(path.name for path in folder.glob("*.py") if NAME.fullmatch(path.name))
    chosen = [name for name in names if not forms or known.get(name) in forms]
    if not chosen:
        raise ValueError(f"{folder} has no candidates of these forms: give more --forms")
    return chosen, len({NAME.fullmatch(name).groups()[:2] for name in chosen})


def copies(arguments):
    """Writes copies of all references. ValueError: there are none."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found = [
        path
        for root in (arguments.problems / "KernelBench", arguments.problems)
        for path in sorted(root.glob("level[123]/[0-9]*_*.py"))
    ]
    if not found:
        raise ValueError(f"{arguments.problems} has no levels 1 to 3: name the checkout")
    for path in found:
        number = path.name.partition("_")[0]
        name = f"level_{path.parent.name.removeprefix('level')}_problem_{number}_sample_0_kernel.py"
        text = re.sub(r"\bModel\b", "ModelNew", path.read_text(encoding="utf-8"))
        (arguments.folder / name).write_text(text, encoding="utf-8")
    print(f"{len(found)} copies")


def short(text):
    """A message's first line, without this machine's folders."""
    return re.sub(r"/\S*/", "", text.partition("\n")[0])[:ERROR_LENGTH_MAX]


def row_of_verdict(kept):
    """What a table needs of a row of `assay run`."""
    row = {"candidate": pathlib.Path(kept["candidate"]).name}
    verdict = kept.get("verdict")
    if verdict is None:
        return {**row, "outcome": None, "message": short(kept["error"]["message"])}
    row.update(outcome=verdict["outcome"], cost=verdict["cost"])
    row["message"] = short(verdict.get("message") or "")
    if speed := verdict.get("speed"):
        best = speed["baselines"].get(speed["headline"])
        kinds = ("speedup", "ci", "pairs", "time_ns", "candidate_time_ns")
        row.update({name: best[name] for name in kinds} if best else {})
    return row


def kept_rows(path):
    """The rows that a run wrote whole; of a candidate that it tried again the last."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
    return list({row["candidate"]: row for row in lines}.values())


def outcomes(kept):
    """The sums of a run's rows; an error's kind stands in a verdict's place."""
    counts = collections.Counter(
        row["verdict"]["outcome"] if "verdict" in row else f"error: {row['error']['kind']}"
        for row in kept
    )
    verdicts = [row["verdict"] for row in kept if "verdict" in row]
    costs = ("build_s", "start_s", "fill_s", "timed_s", "overhead_s", "total_s")
    return {
        "judged": len(verdicts),
        "outcomes": dict(counts.most_common()),
        "costs": {
            name: round(math.fsum(verdict["cost"][name] or 0 for verdict in verdicts), 1)
            for name in costs
        },
        "gpu": verdicts[0]["machine"]["gpu"] if verdicts else None,
        "toolchain": verdicts[0]["toolchain"] if verdicts else None,
    }


def assay(arguments, more):
    if not os.access(ASSAY, os.X_OK):
        raise ValueError(f"{ASSAY} is no program: scripts/build builds it, $ASSAY_BINARY names it")
    before = kept_rows(arguments.results / "verdicts.jsonl")
    if before and not arguments.goes_on:
        raise ValueError(
            f"{arguments.results} has verdicts: give a fresh folder, or --goes-on to judge the rest"
        )
    chosen, problems = selection(arguments.folder, arguments.forms)
    with tempfile.TemporaryDirectory(prefix="run-speed-") as temporary:
        folder = pathlib.Path(temporary) / "candidates"
        folder.mkdir()
        for name in chosen:
            shutil.copy(arguments.folder / name, folder)
        command = [ASSAY, "run", str(folder), "--problems", str(arguments.problems)]
        command += ["--results", str(arguments.results)]
        command += ["--sizes", str(arguments.sizes)] if arguments.sizes else []
        command += more
        environment = dict(os.environ)
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            environment[name] = str(pathlib.Path(temporary) / name)
        begin = time.monotonic()
        code = run_bounded(command, environment, 60 * arguments.minutes)
        wall_s = time.monotonic() - begin
    kept = kept_rows(arguments.results / "verdicts.jsonl")
    new = [one for one in kept if one not in before]
    sums = outcomes(new)
    row = {
        "what": "assay",
        **common(arguments),
        "command": ["assay", "run", "CANDIDATES", *command[3:]],
        "options": more,
        "forms": arguments.forms,
        "candidates": len(chosen),
        "problems": problems,
        "wall_s": round(wall_s, 2),
        "s_a_candidate": round(wall_s / sums["judged"], 3) if sums["judged"] else None,
        "exit": code,
        **sums,
    }
    rows.append(arguments.out, row)
    for one in new:
        sizes = arguments.sizes.name if arguments.sizes else None
        rows.append(arguments.out, {"what": "verdict", "sizes": sizes, **row_of_verdict(one)})
    print(json.dumps({key: row[key] for key in ("wall_s", "s_a_candidate", "outcomes", "exit")}))
    if code == INTERRUPTED or code < 0:
        judged = {pathlib.Path(one["candidate"]).name for one in kept}
        left_out(arguments, "assay", [name for name in chosen if name not in judged])


def run_bounded(command, environment, seconds):
    """Runs it for so long, then interrupts it. Returns its exit code, or -SIGNAL."""
    process = subprocess.Popen(command, env=environment)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def beside(row, others):
    """KernelBench's verdicts beside a row of `assay run`: of the same cards, sizes and forms."""
    return [
        other
        for other in others
        if "parts" in other
        and set(other["cards"]) == set(row["cards"]) != set()
        and other["sizes"] == row["sizes"]
        and (not row["forms"] or other["form"] in row["forms"])
    ]


def name_of(row):
    """What was measured, in words."""
    forms = ", ".join(row["forms"]) if row["forms"] else "all forms"
    places = collections.Counter(row["cards"])
    where = ", ".join(f"{count} x {card}" for card, count in places.items()) or "no GPU"
    judged = f"{row['judged']} candidates"
    if row["judged"] < row["candidates"]:
        judged = f"{row['judged']} of {row['candidates']} candidates"
    options = f", `{' '.join(row['options'])}`" if row["options"] else ""
    return (
        f"`assay run`, {judged} ({forms}) for {row['problems']} problems, "
        f"on a machine with {where} and {row['cores']} cores{options}"
    )


def table(all_rows):
    """The table in Markdown: seconds a candidate, all of a run's wall time over those it judged."""
    theirs = [row for row in all_rows if row["what"] == "kernelbench"]
    lines = ["| what | measured | KernelBench beside | ratio |", "|---|---|---|---|"]
    for row in (row for row in all_rows if row["what"] == "assay"):
        seconds = row["s_a_candidate"]
        same = beside(row, theirs)
        words = "-"
        if same:
            wall_s = statistics.fmean(other["wall_s"] for other in same)
            build_s = statistics.fmean(other["parts"].get("build_s", 0) for other in same)
            compiled, correct = (
                sum(other[name] is True for other in same) for name in ("compiled", "correct")
            )
            words = (
                f"{wall_s:.1f} s, mean of {len(same)} ({compiled} compiled, {correct} correct); "
                f"{build_s:.1f} s of it building"
            )
        cells = (
            name_of(row),
            "-" if seconds is None else f"{seconds:.2f} s",
            words,
            f"{wall_s / seconds:.1f}" if same and seconds else "-",
        )
        lines.append(f"| {' | '.join(cells)} |")
    for row in (row for row in all_rows if row["what"] == "left_out"):
        lines.append(f"\nLeft out of {row['part']}: {len(row['candidates'])} candidates")
    return "\n".join(lines)


def agreement(all_rows):
    """The table in Markdown of what both say of a candidate; of several rows the last counts."""
    ours = {(r["candidate"], r["sizes"]): r for r in all_rows if r.get("what") == "verdict"}
    theirs = {(r["candidate"], r["sizes"]): r for r in all_rows if r.get("what") == "kernelbench"}
    lines = ["| candidate | KernelBench | seconds | Assay | seconds | |", "|" + "---|" * 6]
    for key in sorted(ours.keys() & theirs.keys()):
        mine, other = ours[key], theirs[key]
        said = "correct" if other.get("correct") else "not correct"
        times = [other.get(name) or 0 for name in ("reference_runtime_ms", "runtime_ms")]
        if min(times) > 0:
            said += f", {times[0] / times[1]:.3g}x"
        outcome = mine["outcome"] or "not judged"
        if mine.get("speedup"):
            outcome += f", {mine['speedup']:.3g}x"
        seconds = f"{mine['cost']['total_s']:.0f}" if "cost" in mine else "-"
        name = key[0].removesuffix("_kernel.py")
        why = "" if mine.get("speedup") else mine["message"]
        lines.append(f"| {name} | {said} | {other['wall_s']:.0f} | {outcome} | {seconds} | {why} |")
    return "\n".join(lines)


def parse(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    both = argparse.ArgumentParser(add_help=False)
    both.add_argument("--problems", type=pathlib.Path, required=True, help="KernelBench's checkout")
    both.add_argument("--out", type=pathlib.Path, required=True, help="JSON lines; appended to")
    both.add_argument("--sizes", type=pathlib.Path, default=SIZES)
    both.add_argument("--own-sizes", dest="sizes", action="store_const", const=None)
    both.add_argument("--minutes", type=float, default=600)
    theirs = parts.add_parser("kernelbench", parents=[both])
    theirs.add_argument("candidates", nargs="*", help="file names (default: five)")
    theirs.add_argument("--answers", type=pathlib.Path, default=ANSWERS, help="their folder")
    theirs.add_argument("--kernelbench", type=pathlib.Path, help="its sources, if elsewhere")
    theirs.add_argument("--builds", type=int, default=1, help="side by side; one is measured")
    theirs.add_argument("--timeout", type=float, default=KERNELBENCH_TIMEOUT_S)
    theirs.add_argument("--arch", default="Hopper", help="KernelBench's gpu_arch")
    ours = parts.add_parser("assay", parents=[both])
    ours.add_argument("folder", type=pathlib.Path)
    ours.add_argument("--results", type=pathlib.Path, required=True, help="a folder")
    ours.add_argument("--goes-on", action="store_true", help="the folder has verdicts")
    ours.add_argument("--forms", type=lambda text: text.split(","), default=[])
    made = parts.add_parser("copies")
    made.add_argument("--problems", type=pathlib.Path, required=True, help="KernelBench's checkout")
    made.add_argument("folder", type=pathlib.Path)
    compared = parts.add_parser("agreement")
    compared.add_argument("rows", nargs="+", type=pathlib.Path)
    shown = parts.add_parser("table")
    shown.add_argument("rows", nargs="+", type=pathlib.Path)
    return parser.parse_args(words)


def main(words):
    cut = words.index("--") if "--" in words else len(words)
    arguments, more = parse(words[:cut]), words[cut + 1 :]
    try:
        if more and arguments.part != "assay":
            raise ValueError("words after -- are options of `assay run`: give them to part assay")
        if arguments.part == "kernelbench":
            kernelbench(arguments)
        elif arguments.part == "assay":
            assay(arguments, more)
        elif arguments.part == "copies":
            copies(arguments)
        else:
            all_rows = [row for path in arguments.rows for row in rows.read(path)]
            print({"table": table, "agreement": agreement}[arguments.part](all_rows))
    except (OSError, ValueError) as error:
        sys.exit(f"run_speed: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
