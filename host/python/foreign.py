"""Prints a YAML or a Parquet file as lines of JSON: foreign.py yaml|parquet INPUT OUTPUT.

A YAML document is one line; a Parquet file has a line a row. Exit code 3: this Python lacks the
package that reads it. It runs in the sandbox, since the files are anybody's.
"""

import json
import sys


def yaml_lines(path):
    import yaml

    with open(path, encoding="utf-8") as file:
        yield yaml.safe_load(file)


def parquet_lines(path):
    import pyarrow.parquet

    for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=256):
        yield from batch.to_pylist()


def main(kind, path, target):
    try:
        with open(target, "w", encoding="utf-8") as file:
            for line in {"yaml": yaml_lines, "parquet": parquet_lines}[kind](path):
                file.write(json.dumps(line, default=str) + "\n")
    except ImportError as error:
        print(error)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
