#!/usr/bin/python3
"""Every sample verdict fits docs/verdict.schema.json, and damaged ones do not.

Usage: schema_test.py SCHEMA PRINT_SAMPLE_VERDICTS
"""
import copy
import json
import subprocess
import sys

import jsonschema


def paths_of(value, path=()):
    """Yields the path of every member and element below `value`."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield path + (key,)
        yield from paths_of(item, path + (key,))


def parent_of(document, path):
    for key in path[:-1]:
        document = document[key]
    return document


# Members whose names are data: one fewer or one more is still a verdict.
OPEN = (("problem", "set"), ("toolchain",), ("speed", "baselines"), ("libraries", "shares"))


def is_open(path):
    if path[:2] == ("profile", "kernels"):
        return path[3:] == ("stalls",)
    return path in OPEN or (path[:1] == ("kernels",) and path[2:] == ("instructions",))


def damaged(verdict):
    """Yields (what, document): each member removed, given a wrong type, or joined by a stranger."""
    for path in paths_of(verdict):
        parent = parent_of(verdict, path)
        if isinstance(parent, dict) and not is_open(path[:-1]):
            for what, change in (
                ("without", lambda p: p.pop(path[-1])),
                ("with another type at", lambda p: p.update({path[-1]: {"no": ["such", "type"]}})),
            ):
                document = copy.deepcopy(verdict)
                change(parent_of(document, path))
                yield f"{what} {path}", document
        value = parent[path[-1]]
        if isinstance(value, dict) and not is_open(path):
            document = copy.deepcopy(verdict)
            parent_of(document, path)[path[-1]]["stranger"] = 1
            yield f"with a stranger in {path}", document
    yield "with a stranger", {**verdict, "stranger": 1}
    yield "with another schema", {**verdict, "schema": "assay.verdict/2"}
    yield "with an unknown outcome", {**verdict, "outcome": "best"}
    yield "with a number as seed", {**verdict, "seed": 12}


def contradictions(verdict):
    """Yields (what, document): parts that cannot stand together."""
    outcome = verdict["outcome"]
    yield "foul and no foul", {
        **verdict,
        "foul": None if verdict["foul"] else {"rule": "late-write", "seen": "it"},
    }
    if outcome in ("faster", "slower", "tie"):
        yield "timed but wrong", {
            **verdict,
            "correctness": {**verdict["correctness"], "passed": False},
        }
        yield "timed without a time", {**verdict, "speed": None}
        yield "speed passed against the outcome", {
            **verdict,
            "speed": {**verdict["speed"], "passed": not verdict["speed"]["passed"]},
        }
    if outcome == "wrong":
        yield "wrong but correct", {
            **verdict,
            "correctness": {**verdict["correctness"], "passed": True},
        }
        yield "wrong without a reason", {**verdict, "correctness": None}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    validator_class = jsonschema.validators.validator_for(schema)
    validator_class.check_schema(schema)
    validator = validator_class(schema)
    lines = subprocess.run(
        [sys.argv[2]], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    verdicts = [json.loads(line) for line in lines]
    outcomes = schema["properties"]["outcome"]["enum"]
    assert [
        verdict["outcome"] for verdict in verdicts[: len(outcomes)]
    ] == outcomes, "a sample of each outcome, in order"
    assert any(verdict["kernels"] for verdict in verdicts), "a sample of a candidate for a GPU"
    failures = 0
    refused = 0
    for verdict in verdicts:
        for error in validator.iter_errors(verdict):
            failures += 1
            print(f"{verdict['outcome']}: {list(error.absolute_path)}: {error.message}")
        for what, document in (*damaged(verdict), *contradictions(verdict)):
            refused += 1
            if validator.is_valid(document):
                failures += 1
                print(f"{verdict['outcome']}: valid {what}")
    print(f"{len(verdicts)} samples valid, {refused} damaged ones refused, {failures} failures")
    return 1 if failures or not refused else 0


if __name__ == "__main__":
    sys.exit(main())
