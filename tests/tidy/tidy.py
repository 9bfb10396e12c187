"""Checks of the source itself: layers, lengths, banned words, registration.

Prints PATH:LINE: MESSAGE for each fault; exit 0 when there is none. self_test.py shows that each
rule can fail.
"""

import argparse
import ast
import json
import pathlib
import re
import sys

import prose

COLUMNS_MAX = 100
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 80  # 'about 70': the rule of thumb is for people, this is where it ends

# Which folders of src/ a folder's files may include, besides its own.
STAGES = {"problem", "toolchain", "sandbox", "rules", "score"}
# Rooms that show and keep what was judged, and include no part of the judge: lowest first.
SHOWN = ["report", "worklog", "serve"]
# Rooms that sequence the stages, lowest first: each may include the stages and the rooms below it.
ROOMS = [
    "machine",
    "hosts",
    "builders",
    "values",
    "sides",
    "correctness",
    "speed",
    "session",
    "studies",
    "worker",
    "doctor",
    "ladder",
    "swap",
    "run",
    "formats",
    "mine",
    "search",
    "web",
    "runner",
    "mcp",
    "cluster",
    "cli",
]
LAYERS = {
    "base": set(),
    "wire": set(),
    "cuda": set(),
    "model": {"base", "wire"},
    "archive": {"base", "model"},
    "queue": {"base", "archive"},
    "http": {"base"},
    "answer": {"base"},
    "propose": {"base", "model", "http", "answer"},
    **{stage: {"base", "wire", "model"} for stage in STAGES},
    "gpu": {"base", "wire", "cuda"},
    "worker_client": {"base", "model"},
    **{
        room: {"base", "model", "problem", "rules", "score", *SHOWN[:place]}
        for place, room in enumerate(SHOWN)
    },
    **{
        room: {"base", "wire", "cuda", "gpu", "model", *STAGES, *ROOMS[:place]}
        for place, room in enumerate(ROOMS)
    },
}
for room in ROOMS[ROOMS.index("doctor") + 1 :]:
    LAYERS[room] |= set(SHOWN)
for room in ("search", "worklog", "serve", "web", "runner", "mcp", "cluster", "cli"):
    LAYERS[room].add("archive")  # what judges knows nothing of it
LAYERS["toolchain"] = LAYERS["toolchain"] | {"answer"}
for room in ("search", "web", "runner", "mcp", "cluster", "cli"):
    LAYERS[room] |= {"answer", "propose"}
for room in ("web", "runner", "cluster", "cli"):
    LAYERS[room].add("http")
for room in ("cluster", "cli"):
    LAYERS[room].add("queue")
for room in ("worker", "run", "search", "runner", "mcp", "cluster", "cli"):
    LAYERS[room].add("worker_client")
HOST_MAY_USE = {"wire", "cuda"}
HOST_TESTS_MAY_USE = {"base", "wire", "cuda", "model", "problem"}
# Pure folders: samples in, conclusions out.
PURE = {"rules", "score"}
IO_HEADERS = re.compile(
    r"#include (<(fstream|iostream|cstdio|stdio\.h|unistd\.h|fcntl\.h|filesystem|thread|sys/.*)>"
    r'|"base/(files|clock|unique_fd)\.h")'
)

DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/protocol.md",
    "docs/candidate-abi.md",
    "docs/verdict.md",
    "docs/dependencies.md",
    "docs/score.md",
    "docs/audit.md",
    "docs/ladder.md",
    "docs/model.md",
    "docs/tour-laptop.md",
    "docs/tour-kernelbench.md",
    "docs/tour-match.md",
]
SCHEMA = "docs/verdict.schema.json"
# Raw results, inputs of the fuzzers, which are any bytes, and a match as it was played.
RAW = (
    "bench/results/",
    "tests/fuzz/corpus/",
    "tests/formats/flashinfer/blob/",
    "examples/match/",
    "examples/mcp/",
    "examples/worklog/",
)

# (where, pattern, why). Comments and strings are not looked at.
CPP_BANS = [
    ("", r"\busing\s+namespace\s+std\b", "spell std:: out"),
    ("", r"\b(usleep|nanosleep|sleep_for|sleep_until|sleep)\s*\(", "wait on an event, not on time"),
    ("", r"(?<![\w.>])s?rand\s*\(", "randomness is passed in"),
    ("tests may", r"(?<![\w.>])(system|popen)\s*\(", "start programs without a shell"),
    ("", r"(?<![\w:.>])assert\s*\(", "use ASSAY_CHECK, which release builds keep"),
    ("", r"\b(strcpy|strcat|sprintf|vsprintf|gets|tmpnam|mktemp)\s*\(", "unbounded"),
    (
        "stdout",
        r"\b(std::cout|std::clog|printf|puts|putchar|fmt::print)\b",
        "output belongs to cli and report",
    ),
]
EXPLOITS = "tests/exploits/"  # hostile on purpose: held to form, not to what is good for a program
MAY_PRINT = ("src/cli/", "src/report/", "host/", "bench/")
KERNELS_MAY = ("kernels/", "include/")
LONG_FILES = {
    "include/assay/kernel.h": 700,  # one header is all that a candidate needs
}

CPP_SUFFIXES = {".cc", ".h", ".cpp", ".c"}


class Tree:
    """The files of a checkout, read once."""

    FOLDERS = (
        "src",
        "host",
        "include",
        "python",
        "kernels",
        "examples",
        "exports",
        "problems",
        "tests",
        "bench",
        "scripts",
        "docs",
        "cmake",
        ".ci",
    )

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.text = {}
        paths = [path for path in self.root.iterdir() if path.is_file()]
        for folder in self.FOLDERS:
            paths += sorted((self.root / folder).rglob("*"))
        for path in paths:
            name = path.relative_to(self.root).as_posix()
            skipped = "__pycache__" in name or "node_modules" in name
            if not path.is_file() or skipped or name.startswith(RAW):
                continue
            try:
                self.text[name] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # an image

    def files(self, *suffixes):
        return [
            (name, text)
            for name, text in self.text.items()
            if pathlib.PurePosixPath(name).suffix in suffixes
        ]

    def cpp(self):
        return self.files(*CPP_SUFFIXES)


def without_comments_and_strings(text):
    """The C++ text with comments and literals blanked out, line breaks kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
        re.S,
    )

    def blank(match):
        kept = re.sub(r"[^\n]", " ", match.group())
        return '""' + kept[2:] if match.group()[0] in '"R' and len(kept) > 1 else kept

    return pattern.sub(blank, text)


def numbered(text):
    return enumerate(text.split("\n"), start=1)


def folder_of(name):
    """'judge' for src/rules/gate1.cc, 'host' for host/native/main.cc, else ''."""
    parts = name.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return "host" if parts[0] == "host" else ""


def is_test(name):
    """Tests, and the doubles and samples that only they use."""
    stem = pathlib.PurePosixPath(name).stem
    suffixes = ("_test", "_testing", "_double", "_probe", "_fuzz")
    return name.startswith("tests/") or stem.endswith(suffixes)


def rule_layers(tree):
    """Includes run one way."""
    for name, text in tree.cpp():
        folder = folder_of(name)
        if not folder:
            continue
        if folder == "host":
            allowed = HOST_TESTS_MAY_USE if is_test(name) else HOST_MAY_USE
        elif folder in LAYERS:
            allowed = LAYERS[folder] | {folder}
            if name.endswith("_fuzz.cc"):
                allowed |= {"base"}  # for ASSAY_CHECK
        else:
            yield name, 1, f"folder src/{folder} has no layer: name it in tests/tidy/tidy.py"
            continue
        for number, line in numbered(text):
            match = re.match(r'\s*#\s*include\s+["<](\w+)/', line)
            if match and match.group(1) in LAYERS and match.group(1) not in allowed:
                yield name, number, f"{folder} may not include {match.group(1)}"


def rule_purity(tree):
    """rules and score do no I/O: their tests may."""
    for name, text in tree.cpp():
        if folder_of(name) not in PURE or is_test(name):
            continue
        for number, line in numbered(text):
            if IO_HEADERS.match(line):
                yield name, number, f"src/{folder_of(name)} does no I/O and reads no clock"


def rule_slow_headers(tree):
    """JSON, TOML and command-line libraries compile slowly: they stay in .cc files.

    Names alone (json_fwd.hpp) are quick. Messages of src/mcp are JSON, and so are all of its files.
    base/toml.h is for .cc files that read TOML, and no header includes it.
    """
    slow = r'#include (<(nlohmann/(?!json_fwd)|toml\+\+|CLI/|openssl/|sqlite3)|"base/toml\.h)'
    for name, text in tree.files(".h"):
        if name in ("src/mcp/json_rpc.h", "src/base/toml.h"):
            continue
        for number, line in numbered(text):
            if re.match(slow, line):
                yield name, number, "keep this library to .cc files"


def rule_columns(tree):
    for name, text in tree.text.items():
        if pathlib.PurePosixPath(name).suffix not in CPP_SUFFIXES | {".py"}:
            continue
        for number, line in numbered(text):
            if len(line) > COLUMNS_MAX:
                yield name, number, f"{len(line)} columns, at most {COLUMNS_MAX}"


def rule_whitespace(tree):
    for name, text in tree.text.items():
        if name.startswith("docs/") and name.endswith(".svg"):
            continue
        for number, line in numbered(text):
            if line != line.rstrip() and not name.endswith(".md"):
                yield name, number, "blanks at the end of the line"
            if "\t" in line and pathlib.PurePosixPath(name).suffix in CPP_SUFFIXES | {".py"}:
                yield name, number, "a tab"
        if text and not text.endswith("\n"):
            yield name, text.count("\n") + 1, "no line break at the end of the file"


def rule_file_length(tree):
    for name, text in tree.text.items():
        suffix = pathlib.PurePosixPath(name).suffix
        length, length_max = text.count("\n"), LONG_FILES.get(name, FILE_LINES_MAX)
        if suffix in CPP_SUFFIXES | {".py"} and length > length_max:
            yield name, 1, f"{length} lines, at most {length_max}"


NOT_A_FUNCTION = re.compile(
    r"(for|if|while|switch|else|do|try)\b|"
    r"(inline\s+)?(namespace|struct|class|enum|union|extern|template\s*<.*>\s*(struct|class))\b"
)


def cpp_functions(text):
    """(line, length) of each function: a block that opens at some indent and closes at the same."""
    lines = without_comments_and_strings(text).split("\n")
    for start, line in enumerate(lines):
        if not line.rstrip().endswith("{"):
            continue
        head, indent = line.strip(), len(line) - len(line.lstrip())
        for above in reversed(lines[max(0, start - 8) : start]):  # a signature over several lines
            if re.search(r"[;{}:]\s*$", above) or not above.strip() or above.startswith("#"):
                break
            head, indent = above.strip() + " " + head, len(above) - len(above.lstrip())
        if indent > 2:
            continue
        if NOT_A_FUNCTION.match(head) or ")" not in head or re.search(r"=\s*\{$", head):
            continue
        for end in range(start + 1, len(lines)):
            if re.match(r" {%d}\}" % indent, lines[end]):
                yield start + 1, end - start + 1
                break


def rule_function_length(tree):
    for name, text in tree.cpp():
        for number, length in cpp_functions(text):
            if length > FUNCTION_LINES_MAX:
                yield name, number, f"a function of {length} lines, at most {FUNCTION_LINES_MAX}"
    for name, text in tree.files(".py"):
        try:
            nodes = list(ast.walk(ast.parse(text)))
        except SyntaxError as error:
            yield name, error.lineno or 1, "not Python"
            continue
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = node.end_lineno - node.lineno + 1
                if length > FUNCTION_LINES_MAX:
                    message = f"a function of {length} lines, at most {FUNCTION_LINES_MAX}"
                    yield name, node.lineno, message


def rule_bans(tree):
    for name, text in tree.cpp():
        if name.startswith(KERNELS_MAY):
            continue
        for number, line in numbered(without_comments_and_strings(text)):
            for where, pattern, why in CPP_BANS:
                if where == "stdout" and (name.startswith(MAY_PRINT) or "print_" in name):
                    continue
                if where and is_test(name) or name.startswith(EXPLOITS):
                    continue
                match = re.search(pattern, line)
                if match:
                    yield name, number, f"'{match.group().strip()}' is banned: {why}"


def rule_own_text(tree):
    """The repository speaks of itself alone: no path of one machine's, no unfinished work."""
    for name, text in tree.text.items():
        if name.startswith("tests/tidy/"):
            continue
        for number, line in numbered(text):
            if re.search(r"(?<![\w.])/(work|home/\w+|root)/", line):
                yield name, number, "a path of one machine's"
            if re.search(r"\b(TODO|FIXME|XXX)\b", line) and "XXXX" not in line:
                yield name, number, "finish it, or say it in an issue"


def rule_type_names(tree):
    """Two types of one name in one program: the linker keeps the functions of one of them."""
    seen = {}
    for name, text in tree.files(".h"):
        if not name.startswith("src/") or folder_of(name) == "wire":  # a namespace of its own
            continue
        for number, line in numbered(text):
            match = re.match(r"(?:struct|class|enum class) (\w+)(?: final)?(?: :.*)? ?\{", line)
            if match and seen.setdefault(match.group(1), name) != name:
                yield name, number, f"{match.group(1)} is a type of {seen[match.group(1)]}, too"


def rule_header_guard(tree):
    for name, text in tree.files(".h"):
        guard = re.search(r"^#ifndef (\w+)\n#define \1\b", text, re.M)
        if "#pragma once" not in text and not (name.startswith("include/") and guard):
            yield name, 1, "no #pragma once"


def rule_registered(tree):
    """Every source is named in the CMakeLists.txt of its folder or of one above it."""
    for name, _ in tree.files(".cc"):
        path = pathlib.PurePosixPath(name)
        if path.parts[0] not in ("src", "host", "bench"):
            continue
        lists = [
            tree.text.get((parent / "CMakeLists.txt").as_posix(), "") for parent in path.parents
        ]
        word = r"(?<!\w)%s(?!\w)" % re.escape(path.name)
        if name.endswith("_fuzz.cc"):
            word = r"assay_fuzz\(%s " % re.escape(path.name.removesuffix("_fuzz.cc"))
        if not any(re.search(word, text) for text in lists):
            what = "test is not registered" if name.endswith("_test.cc") else "file is not built"
            yield name, 1, f"this {what} in its CMakeLists.txt"


def rule_documents(tree):
    for name in DOCUMENTS:
        if not tree.text.get(name, "").strip():
            yield name, 1, "missing or empty"
    try:
        schema = json.loads(tree.text.get(SCHEMA, ""))
        if "$schema" not in schema:
            yield SCHEMA, 1, "does not say which JSON Schema it follows"
    except ValueError:
        yield SCHEMA, 1, "missing, or not JSON"
    for name, text in tree.text.items():
        if name.startswith("tests/tidy/"):
            continue
        for number, line in numbered(text):
            for page in set(re.findall(r"\bdocs/[\w-]+\.md\b", line)):
                if page not in tree.text:
                    yield name, number, f"{page} does not exist"


def rule_prose(tree):
    """No message's text decides anything."""
    yield from prose.searches(tree.text.items(), is_test)


RULES = [
    rule_layers,
    rule_purity,
    rule_slow_headers,
    rule_columns,
    rule_whitespace,
    rule_file_length,
    rule_function_length,
    rule_bans,
    rule_prose,
    rule_own_text,
    rule_type_names,
    rule_header_guard,
    rule_registered,
    rule_documents,
]


def faults(root):
    """Every fault as (rule, path, line, message)."""
    tree = Tree(root)
    return [(rule.__name__, *fault) for rule in RULES for fault in rule(tree)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2])
    found = faults(parser.parse_args().root)
    for _, name, line, message in found:
        print(f"{name}:{line}: {message}")
    print(f"tidy: {len(found)} faults", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
