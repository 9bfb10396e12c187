"""An evaluator for OpenEvolve: `openevolve-run initial_program@SUFFIX@ evaluator.py`."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import assay_judge  # noqa: E402

try:
    from openevolve.evaluation_result import EvaluationResult
except ImportError:  # OpenEvolve takes the metrics alone, too
    EvaluationResult = None


def evaluate(program_path):
    """Judges the program; a failure of the machine is raised, so that it is no low score."""
    result = assay_judge.result_of(program_path)
    metrics = {
        "combined_score": result["score"],
        "correct": float(result["correct"]),
        "speedup": result["speedup"],
        "certified_speedup": result["certified_speedup"],
    }
    if EvaluationResult is None:
        return metrics
    return EvaluationResult(metrics=metrics, artifacts={"verdict": result["feedback"]})
