"""Searches in messages, which are for people: what decides is a code beside the text.

Looks for strings of several words that are searched for or compared with, and for any string that
is searched for in what is called a message, in C++ and in Python. Foreign output has no codes: the
files that parse it are named here.
"""

import ast
import re

# Each reads what others write, or what the user wrote.
FOREIGN = {
    "host/python/assay_host/failure.py": "exceptions of PyTorch, CUDA and candidates",
    "host/python/assay_host/newer_torch.py": "exceptions of PyTorch",
    "src/builders/lean_headers.cc": "a compiler's --version",
    "src/cli/audit_problems.cc": "Python sources",
    "src/formats/flashinfer.cc": "Python sources",
    "src/formats/import_kernelbench_hard.cc": "Python sources",
    "src/formats/import_popcorn.cc": "Python sources",
    "src/hosts/blame.cc": "failures of CUDA, PyTorch and C++",
    "src/hosts/python_runtime.cc": "places in files, as the Python host writes them",
    "src/machine/machine.cc": "/proc/cpuinfo",
    "src/model/older_words.cc": "words of older verdicts, which have no codes",
    "src/answer/apply_diff.cc": "answers of language models",
    "src/answer/code_of_answer.cc": "answers of language models",
    "src/rules/stream_use.cc": "Python sources",
    "src/sandbox/supervise.cc": "bubblewrap's output",
    "src/sandbox/support.cc": "bubblewrap's --version and --help",
    "src/search/prompt.cc": "Python sources and signatures",
    "src/toolchain/cache.cc": "/proc/cpuinfo",
    "src/toolchain/compute_sanitizer.cc": "Compute Sanitizer's output",
    "src/toolchain/diagnostics.cc": "compilers' output",
    "src/toolchain/native_loop.cc": "objdump's listings",
    "src/toolchain/ncu.cc": "Nsight Compute's output",
    "src/toolchain/nvcc.cc": "nvcc's --version",
    "src/toolchain/packed_folder.cc": "packed folders",
}
# Names of what is searched for and decides nothing of a message's.
MARKS = {
    ("src/hosts/library_time.cc", "kOwnCode"): "the key of a row",
    ("src/http/token.cc", "kScheme"): "of a header of HTTP",
    ("src/ladder/readme_table.cc", "kOpen"): "of a generated table",
    ("src/propose/anthropic.cc", "kEndMark"): "of a stream of events",
    ("src/report/card.cc", "kPrintedHeading"): "between the parts of a log",
    ("src/search/feedback.cc", "kPrintedHeading"): "between the parts of a log",
    ("src/serve/worklog_upload.cc", "place"): "a folder that is taken out of a message",
    ("src/swap/compose_device.cc", "kDefine"): "of CUDA's sources",
    ("src/toolchain/cubin.cc", "kUnnamed"): "of names in machine code",
    ("src/web/site.cc", "kBearer"): "of a header of HTTP",
    ("src/worklog/seal.cc", "kBegin"): "of a generated report",
}
MESSAGES = (
    "(?:message|note|why|hint|reason|missing|trouble|failure|isolation|advice|mend|said|text)"
)

# Two words beside each other, or one beside a blank or bracket at an end.
PROSE = re.compile(
    r"[A-Za-z]{2,}[,.:;]? +[(]?[A-Za-z]{2,}|^[ ,;]+[a-z]{2,} |[a-z]{2,} \(?$",
)
_STRING = r'"((?:\\.|[^"\\\n])*)"'
_CALL = r"(?:\.|->)(?:find|rfind|contains|starts_with|ends_with)\(\s*"
_SEARCH = re.compile(rf"{_CALL}(?:std::string(?:_view)?\()?(?:{_STRING}|(k[A-Z]\w*)\b)")
_IN_MESSAGE = re.compile(rf"\b{MESSAGES}(?:\(\))?{_CALL}{_STRING}")
_IN_FIELD = re.compile(
    rf"(?:\.|->){MESSAGES}(?:\(\))?{_CALL}([a-z]\w*(?:(?:\.|->)\w+)*)",
)
_IN_LOCAL = re.compile(rf"\b(?:message|note|why|hint|reason){_CALL}(\w+(?:(?:\.|->)\w+)+)")
_EQUAL = re.compile(rf"[=!]=\s*(?:{_STRING}|(k[A-Z]\w*)\b)")
_STRSTR = re.compile(rf"\bstr(?:str|cmp|ncmp)\(\s*[^,()]+,\s*{_STRING}")
_CONSTANT = re.compile(
    r"(?:string_view|char\s*\*|char|string)\s*(?:const\s+)?(k[A-Z]\w*)(?:\[\])?\s*(?:=|\{)\s*"
    + _STRING
)


def without_comments(text):
    """The C++ text with comments blanked out, line breaks and literals kept."""
    pattern = re.compile(
        r'(R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S
    )
    return pattern.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group()), text)


def is_prose(literal):
    return bool(PROSE.search(literal))


def constants_of(text):
    """The names of constants of several words."""
    return {name for name, literal in _CONSTANT.findall(text) if is_prose(literal)}


def cpp_searches(text, constants):
    """(line, what) of each search of the text. `constants`: names of prose from elsewhere."""
    plain = without_comments(text)
    constants = constants | constants_of(plain)
    found = {}

    def note(match, what):
        found.setdefault(plain.count("\n", 0, match.start()) + 1, what)

    for pattern in (_SEARCH, _EQUAL):
        for match in pattern.finditer(plain):
            literal, name = match.groups()
            if (literal is not None and is_prose(literal)) or name in constants:
                note(match, name or f'"{literal}"')
    for match in _STRSTR.finditer(plain):
        if is_prose(match.group(1)):
            note(match, f'"{match.group(1)}"')
    for match in _IN_MESSAGE.finditer(plain):
        if re.search(r"[A-Za-z]{2}", re.sub(r"\\x[0-9A-F]{2}|\\.", "", match.group(1))):
            note(match, f'"{match.group(1)}"')
    # A text that another one repeats is not said twice.
    for pattern in (_IN_FIELD, _IN_LOCAL):
        for match in pattern.finditer(plain):
            if not re.fullmatch(MESSAGES, re.split(r"\.|->", match.group(1))[-1]):
                note(match, match.group(1))
    return sorted(found.items())


def _is_prose_node(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and is_prose(node.value)


def python_searches(text):
    """(line, what) of each search of the text."""
    for node in ast.walk(ast.parse(text)):
        searched = []
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = (node.left, node.comparators[0])
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                searched = [node.left]
            elif isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                searched = sides
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith", "find", "rfind", "index", "count"):
                searched = node.args[:1]
        for each in searched:
            if _is_prose_node(each):
                yield node.lineno, repr(each.value)


def searches(files, is_test):
    """(name, line, message) of each search outside of tests and of FOREIGN."""
    own = [
        (name, text)
        for name, text in files
        if name.startswith(("src/", "host/")) and not is_test(name)
    ]
    shared = set()
    for name, text in own:
        if name.endswith(".h"):
            shared |= constants_of(without_comments(text))
    for name, text in own:
        if name in FOREIGN:
            continue
        if name.endswith((".cc", ".h")):
            found = cpp_searches(text, shared)
        elif name.endswith(".py"):
            try:
                found = python_searches(text)
            except SyntaxError:
                continue  # told by another rule
        else:
            continue
        for line, what in found:
            if (name, what) not in MARKS:
                yield name, line, f"searches a message for {what}: give it a code instead"
