"""Judges a candidate by the package `assay`, under a limit of time."""

import argparse

try:
    import assay
except ImportError as error:
    raise ImportError("install Assay's wheel into this Python: pip install FILE.whl") from error

ARGUMENTS = ["@ARGUMENTS@"]  # the problem, and which of its kind
TERMS = {}  # more terms of assay.judge, such as {"threads": 1}
LIMIT_S = 600


def terms_of(arguments):
    """The arguments as those of assay.judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("problem")
    parser.add_argument("--size")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--grad", dest="gradients", action="store_const", const=True)
    terms = vars(parser.parse_args(arguments))
    terms["set"] = dict(setting.split("=", 1) for setting in terms["set"]) or None
    return terms


def result_of(path):
    """Returns a dictionary: `score` (Verdict.score), `correct`, `outcome`, `speedup`,
    `certified_speedup`, `feedback`. Raises assay.AssayError if the request or the machine failed,
    which says nothing of the candidate.
    """
    terms = {**terms_of(ARGUMENTS), **TERMS}
    [verdict] = assay.judge(candidates=path, limit_s=LIMIT_S, **terms)
    return {
        "score": verdict.score,
        "correct": verdict.correct,
        "outcome": verdict.outcome.value,
        "speedup": verdict.speedup or 0.0,
        "certified_speedup": verdict.certified_speedup or 0.0,
        "feedback": verdict.feedback,
    }
