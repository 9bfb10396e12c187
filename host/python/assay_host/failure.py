"""Failures by the wire's names, and short texts for exceptions of foreign code."""

import functools
import os
import re
import traceback

PROBLEM_LOAD = 1
PROBLEM_SET = 2
PROBLEM_INPUTS = 3
PROBLEM_FORWARD = 4
PROBLEM_OUTPUT = 5
PROBLEM_RANDOM = 6
DRAW_MEANINGLESS = 7
FLOAT64_UNSUPPORTED = 8
CANDIDATE_LOAD = 20
CANDIDATE_ENTRY = 21
CANDIDATE_SIGNATURE = 22
CANDIDATE_FORWARD = 23
CANDIDATE_OUTPUT = 24
ENVIRONMENT = 40

TEXT_LENGTH_MAX = 600

# Triton's: the place comes first, then the source, at last what is wrong.
_COMPILATION_ERRORS = (
    "CompilationError",
    "CompileTimeAssertionFailure",
    "UnsupportedLanguageConstruct",
)


class Failure(Exception):
    """A request that cannot be met; becomes a kFailed frame with this number, and this text in the
    report.
    """

    def __init__(self, number, message):
        super().__init__(message)
        self.number = number
        self.message = message


def first_compiler_error(text):
    """Returns the first line of a compiler's or linker's output with an error, or None."""
    for line in text.splitlines():
        if "error:" in line and "ninja" not in line and not line.startswith("RuntimeError"):
            return line.strip()
    for line in text.splitlines():
        if "undefined reference" in line or "cannot find -l" in line:
            return line.strip()
    return None


def _in_words(describe):
    """Wraps a function of foreign exceptions: making their text runs foreign code, which may raise,
    too.
    """

    @functools.wraps(describe)
    def careful(error, *arguments):
        try:
            return describe(error, *arguments)
        except BaseException:
            return "an exception that cannot be put into words"

    return careful


@_in_words
def describe_exception(error):
    """Returns 'RuntimeError: mat1 and mat2 ...', one line of bounded length; for a failed build its
    first error.
    """
    text = str(error)
    if "Error building extension" in text:
        found = first_compiler_error(text)
        if found:
            return ("the extension does not compile: " + found)[:TEXT_LENGTH_MAX]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    name = type(error).__name__
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error.code!r})"[:TEXT_LENGTH_MAX]
    if name in _COMPILATION_ERRORS and len(lines) > 1:
        return f"{name}: {lines[-1]} ({lines[0].rstrip(':')})"[:TEXT_LENGTH_MAX]
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return ("out of memory: " + (lines[0] if lines else name))[:TEXT_LENGTH_MAX]
    if "does not require grad" in text:
        lines[0] += (
            "; forward runs without autograd: compute gradients within `with torch.enable_grad():` "
            "by torch.autograd.grad, as docs/problems.md shows"
        )
    return (f"{name}: {lines[0]}" if lines else name)[:TEXT_LENGTH_MAX]


def line_in_file(error, path):
    """Returns the last line of `path` that the exception passed through, or None."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path:
            line = number
    return line


@_in_words
def explain(error, path):
    """Returns 'softmax.py line 12: TypeError: ...': the place in the file, then the exception."""
    line = line_in_file(error, path)
    place = os.path.basename(path) + (f" line {line}" if line is not None else "")
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{place}: not valid Python: {error.msg}"
    return f"{place}: {describe_exception(error)}"


def explain_forward(error, path, torch_version):
    """Explains why forward fails; says so if this PyTorch lacks an operator for a short dtype."""
    found = re.search(r"\"?(\w+)\"? not implemented for '(Half|BFloat16)'", str(error))
    if found:
        dtype = {"Half": "float16", "BFloat16": "bfloat16"}[found.group(2)]
        return (
            f"PyTorch {torch_version} has no {dtype} {found.group(1)} on the CPU: change the "
            "problem's dtype with --set where it has a constant for it, or use a newer PyTorch"
        )
    return "forward fails: " + explain(error, path)
