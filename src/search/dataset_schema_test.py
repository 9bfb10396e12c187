#!/usr/bin/python3
"""Lines of every kind of dataset fit docs/dataset.schema.json, and damaged ones do not.

Usage: dataset_schema_test.py SCHEMA PRINT_SAMPLE_DATASETS
"""
import json
import subprocess
import sys

import jsonschema

KINDS = {f"assay.{kind}/1" for kind in ("verified", "sft", "preference", "rl", "foul")} | {None}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    printed = subprocess.run([sys.argv[2]], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    assert {line.get("schema") for line in lines} == KINDS, "a line of each kind"
    failures = 0
    for line in lines:
        for error in validator.iter_errors(line):
            failures += 1
            print(f"{line.get('schema')}: {list(error.absolute_path)}: {error.message}")
            for reason in error.context:
                print(f"  {list(reason.absolute_path)}: {reason.message}")
        for damaged in [{**line, "stranger": 1}] + [
            {other: value for other, value in line.items() if other != key}
            for key in line
        ]:
            if validator.is_valid(damaged):
                failures += 1
                print(f"{line.get('schema')}: valid with {sorted(damaged)}")
    print(f"{len(lines)} lines, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
