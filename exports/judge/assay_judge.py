"""Judges a candidate by Assay, in a process of its own, under a limit of time."""

import json
import subprocess

PROGRAM = "assay"
ARGUMENTS = ["@ARGUMENTS@"]  # the problem, then options of `assay judge`
LIMIT_S = 600


class NoVerdict(RuntimeError):
    """The request or the machine failed: this says nothing of the candidate."""


def verdict_of(path):
    """Returns the verdict on the file (docs/verdict.md). Raises NoVerdict."""
    command = [PROGRAM, "judge", ARGUMENTS[0], str(path), *ARGUMENTS[1:], "--json"]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL
        )
        verdict = json.loads(process.stdout)
    except subprocess.TimeoutExpired as error:
        raise NoVerdict(f"no verdict within {LIMIT_S} s") from error
    except (OSError, ValueError) as error:
        raise NoVerdict(f"{' '.join(command)}: {error}") from error
    if "outcome" not in verdict:
        raise NoVerdict(verdict.get("message", "no verdict"))
    return verdict


def result_of(path):
    """Returns a dictionary: `score`, 0 unless correct, else the certified speedup, or the measured
    one up to 1 where no gain is certified; `correct`; `outcome`; `speedup`; `feedback`, one text.
    """
    verdict = verdict_of(path)
    correct = bool((verdict.get("correctness") or {}).get("passed")) and not verdict.get("foul")
    speed = verdict.get("speed") or {}
    headline = speed.get("baselines", {}).get(speed.get("headline"), {})
    speedup = headline.get("speedup") or 0.0
    certified = headline.get("certified_speedup") or 0.0
    told = verdict["message"]
    feedback = [told if told.startswith(verdict["outcome"]) else f"{verdict['outcome']}: {told}"]
    hint = (verdict.get("correctness") or {}).get("hint")
    feedback += [hint] if hint and hint not in told else []
    if verdict["outcome"] == "build_failed":
        feedback.append((verdict.get("log") or "")[-4000:])
    return {
        "score": max(certified, min(speedup, 1.0)) if correct else 0.0,
        "correct": correct,
        "outcome": verdict["outcome"],
        "speedup": speedup,
        "certified_speedup": certified,
        "feedback": "\n".join(feedback),
    }
