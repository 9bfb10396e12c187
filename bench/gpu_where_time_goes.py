"""Where the time of verdicts on a GPU goes, span by span (ASSAY_TRACE), for candidates of each
form. Appends a table a candidate to RESULTS:

    python3 bench/gpu_where_time_goes.py RESULTS.txt [--forms device native python]

Each call judges three variants of a softmax kernel; of each, what lies between the begin of its
first gate 1 and the end of its gate 2. Builds come before. $ASSAY_BINARY names the program.
"""
import argparse
import os
import pathlib
import tempfile

import gpu_verdicts
import rows
import trace_summary

CANDIDATES = 3


def spans_of(trace, number):
    """Those of one candidate of the call; None where it did not come as far as gate 2."""
    spans = trace_summary.read(trace)
    begins = [span["ts"] for span in spans if span["name"] == "gate 1"]
    ends = [span["ts"] + span["dur"] for span in spans if span["name"] == "gate 2"]
    if max(len(begins), len(ends)) < number or len(begins) != len(ends):
        return None
    begin, end = begins[number - 1], ends[number - 1]
    return [span for span in spans if span["ts"] >= begin and span["ts"] + span["dur"] <= end]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--forms", nargs="+", choices=gpu_verdicts.FORMS, default=["device"])
    parser.add_argument("--size", choices=gpu_verdicts.SIZES, default="small")
    arguments = parser.parse_args()
    row_count, columns = gpu_verdicts.SIZES[arguments.size]
    for form in arguments.forms:
        with tempfile.TemporaryDirectory() as folder, open(
            arguments.results, "a", encoding="utf-8"
        ) as results:
            trace = os.path.join(folder, "trace.json")
            os.environ["ASSAY_TRACE"] = trace
            paths = list(gpu_verdicts.variants(folder, CANDIDATES, form))
            verdicts, _ = gpu_verdicts.judge(paths, row_count, columns)
            gpu = verdicts[0]["machine"]["gpu"]
            title = f"{form}, {row_count} x {columns}, {gpu}, judge {rows.judge_commit()}, "
            title += rows.now()
            for number, verdict in enumerate(verdicts, 1):
                costs = ", ".join(f"{name} {cost}" for name, cost in verdict["cost"].items())
                said = f"candidate {number}: {verdict['message']}; {costs}"
                print(f"== {title}, {said}", file=results)
                if kept := spans_of(trace, number):
                    trace_summary.show(kept, file=results)


if __name__ == "__main__":
    main()
