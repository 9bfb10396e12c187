"""An evaluator for ShinkaEvolve: evaluate.py --program_path FILE --results_dir FOLDER."""

import argparse
import json
import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import assay_judge  # noqa: E402


def main(program_path, results_dir):
    """Writes metrics.json and correct.json. A failure of the machine leaves no metrics."""
    folder = pathlib.Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        result = assay_judge.result_of(program_path)
    except assay_judge.assay.AssayError as error:
        (folder / "correct.json").write_text(json.dumps({"correct": False, "error": str(error)}))
        return 1
    error = None if result["correct"] else result["feedback"]
    metrics = {
        "combined_score": result["score"],
        "public": {key: result[key] for key in ("outcome", "speedup", "certified_speedup")},
        "private": {},
        "text_feedback": result["feedback"],
    }
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "correct.json").write_text(json.dumps({"correct": result["correct"], "error": error}))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    arguments = parser.parse_args()
    sys.exit(main(arguments.program_path, arguments.results_dir))
