"""A worklog of many versions: how long `assay worklog render` takes, and its page's first paint.

The worklog comes by the same commands that a player uses: init, predict, and an attempt for each
version, judged by both gates. Versions differ by how many rows of a softmax they take at a time.

    bench/worklog_page.py --versions 100 --folder FOLDER --out rows.jsonl

FOLDER is made if it is missing, and is continued otherwise. With --browser (npm ci in
tests/browser) a browser opens the page, each time afresh.
"""

import argparse
import gzip
import json
import pathlib
import subprocess
import time

from rows import ROOT, append

FIRST_PAINT = ROOT / "tests" / "browser" / "first_paint.mjs"
SOURCE = """#include <assay/kernel.h>

#include <cmath>

// Softmax of each row; {rows} rows at a time.
constexpr int64_t kRows = {rows};

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {{
  for (int64_t first = 0; first < x.size(0); first += kRows) {{
    const int64_t end = std::min(first + kRows, x.size(0));
    for (int64_t r = first; r < end; ++r) {{
      const float* in = x.data() + r * x.size(1);
      float* out = y.data() + r * x.size(1);
      float most = in[0], sum = 0;
      for (int64_t c = 0; c < x.size(1); ++c) most = std::fmax(most, in[c]);
      for (int64_t c = 0; c < x.size(1); ++c) sum += out[c] = std::exp(in[c] - most);
      for (int64_t c = 0; c < x.size(1); ++c) out[c] /= sum;
    }}
  }}
}}
"""


def build(program, folder, count, problem, size):
    place = ["--in", str(folder), "--archive", str(folder.parent / f"{folder.name}.sqlite")]

    def run(*arguments):
        command = [program, "worklog", *arguments, *place]
        process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {process.stderr}")

    if not folder.exists():
        run("init", problem, "--size", size, "--budget", "8", "--author", "player 1 (example)")
        because = "each row is read three times"
        run("predict", "--regime", "memory", "--ratio", "1.5", "--because", because)
    source = folder.parent / "version.cpp"
    for number in range(measured(folder) + 1, count + 1):
        source.write_text(SOURCE.format(rows=number), encoding="utf-8")
        run("attempt", str(source), "--why", f"{number} rows at a time", "--quiet")


def facts_of(folder):
    return [json.loads(line) for line in (folder / "facts.jsonl").open(encoding="utf-8")]


def measured(folder):
    """How many versions have a verdict."""
    events = [json.loads(f["content"]) for f in facts_of(folder) if f["name"] == "worklog/measured"]
    return len({event["version"] for event in events if event["verdict"]})


def time_of(command, times):
    """Seconds of whole processes. A check that tells of missing parts ends with code 1."""
    seconds = []
    for _ in range(times):
        begun = time.monotonic()
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        seconds.append(round(time.monotonic() - begun, 4))
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)}: {process.stderr}")
    return seconds


def first_paints(page, times):
    command = ["node", str(FIRST_PAINT), str(times), page.resolve().as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(run.stdout)["seen"]


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--versions", type=int, default=100)
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--times", type=int, default=11)
    parser.add_argument("--browser", action="store_true", help="measure first paints, too")
    parser.add_argument("--out", type=pathlib.Path, help="file to add the row to")
    arguments = parser.parse_args()
    folder = arguments.folder
    build(arguments.program, folder, arguments.versions, arguments.problem, arguments.size)
    page = folder / "worklog.html"
    place = ["--in", str(folder)]
    render = time_of([arguments.program, "worklog", "render", *place], arguments.times)
    check = time_of([arguments.program, "worklog", "check", *place], arguments.times)
    text = page.read_bytes()
    row = {
        "what": f"worklog of {arguments.problem} {arguments.size}, whole processes",
        "versions": measured(folder),
        "facts": len(facts_of(folder)),
        "page_bytes": len(text),
        "gzip_bytes": len(gzip.compress(text, 6)),
        "render_median_s": median(render),
        "check_median_s": median(check),
        "render_s": render,
        "check_s": check,
    }
    if arguments.browser:
        row["seen"] = first_paints(page, 7)
        row["first_paint_median_ms"] = median([each["first_paint_ms"] for each in row["seen"]])
    print(json.dumps(row))
    if arguments.out:
        append(arguments.out, row)


if __name__ == "__main__":
    main()
