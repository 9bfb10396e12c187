"""Failures by the wire's names, and short texts for exceptions of foreign code."""

import errno
import functools
import importlib.util
import linecache
import os
import re
import sys
import traceback

PROBLEM_LOAD = 1
PROBLEM_SET = 2
PROBLEM_INPUTS = 3
PROBLEM_FORWARD = 4
PROBLEM_OUTPUT = 5
PROBLEM_RANDOM = 6
DRAW_MEANINGLESS = 7
FLOAT64_UNSUPPORTED = 8
PROBLEM_CHECK = 9
PROBLEM_NOT_HERE = 10
CANDIDATE_LOAD = 20
CANDIDATE_ENTRY = 21
CANDIDATE_SIGNATURE = 22
CANDIDATE_FORWARD = 23
CANDIDATE_OUTPUT = 24
CANDIDATE_NOT_HERE = 25
ENVIRONMENT = 40

TEXT_LENGTH_MAX = 600

# Triton's: the place comes first, then the source, at last what is wrong.
_COMPILATION_ERRORS = (
    "CompilationError",
    "CompileTimeAssertionFailure",
    "UnsupportedLanguageConstruct",
)


# Modules that are of no use without a GPU, installed or not.
_CUDA_MODULES = {"triton", "cupy", "pycuda", "cuda", "cutlass", "flash_attn", "tensorrt"}
# Of exceptions that say it in words: PyTorch's, CUDA's, and those of a candidate's own checks.
_CUDA_WORDS = re.compile(r"\bCUDA|\bGPU\b|NVIDIA driver|(?i:\bcuda (tensor|device|error))")
_CUDA_CHECKS = re.compile(r"\bis_cuda\b|\bcuda\.is_available\b")
_CUDA_HEADERS = re.compile(
    r"(cu(da|blas|dnn|rand|solver|sparse|tlass)|ATen/cuda|c10/cuda|nccl)[\w/.]*: No such file"
    r"|cannot find -l(cu|c10_cuda|torch_cuda|nccl)"
)
_LACKS_HEADER = re.compile(r"fatal error: .*(: No such file|' file not found)")
_FOLDER = "a candidate of several files is judged as their folder: assay judge PROBLEM FOLDER"
_ONE_FILE = "a problem is judged from its one file: it makes what it needs, or has it in its text"
_CUDA_FOLDERS = re.compile(r"[/\\](torch[/\\]cuda|triton)[/\\]")

# True in a process that was given a CUDA device (device.start).
cuda_is_here = False


def counted(count, noun):
    """Returns '1 output', '2 outputs'."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


class Failure(Exception):
    """A request that cannot be met; becomes a kFailed frame with this number, and this text in the
    report. `of_extension`: an extension does not compile.
    """

    def __init__(self, number, message, of_extension=False):
        super().__init__(message)
        self.number = number
        self.message = message
        self.of_extension = of_extension


def first_compiler_error(text):
    """Returns the first line of a compiler's or linker's output with an error, or None."""
    for line in text.splitlines():
        if "error:" in line and "ninja" not in line and not line.startswith("RuntimeError"):
            return line.strip()
    for line in text.splitlines():
        if "undefined reference" in line or "cannot find -l" in line:
            return line.strip()
    return None


def _careful(otherwise):
    """Wraps a function of foreign exceptions, to return `otherwise` where it raises: making their
    text runs foreign code, which may raise, too.
    """

    def wrap(describe):
        @functools.wraps(describe)
        def careful(error, *arguments):
            try:
                return describe(error, *arguments)
            except BaseException:
                return otherwise

        return careful

    return wrap


@_careful(None)
def _compiler_error(error):
    """Returns the first error of an extension that PyTorch's loader could not compile; None for
    other exceptions.
    """
    text = str(error)
    return first_compiler_error(text) if "Error building extension" in text else None


def _refused_by_argparse(error):
    """Returns argparse's own text where that ended the program; else None."""
    parser = getattr(sys.modules.get("argparse"), "ArgumentParser", None)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if parser is not None and frame.f_code is parser.error.__code__:
            return str(frame.f_locals.get("message"))
    return None


@_careful("an exception that cannot be put into words")
def describe_exception(error):
    """Returns 'RuntimeError: mat1 and mat2 ...', one line of bounded length; for a failed build its
    first error.
    """
    text = str(error)
    found = _compiler_error(error)
    if found:
        return ("the extension does not compile: " + found)[:TEXT_LENGTH_MAX]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    name = type(error).__name__
    if isinstance(error, SystemExit):
        refused = _refused_by_argparse(error)
        if refused:
            return (
                f"its argument parser ends the program: {refused}; a file is imported without "
                "arguments: give each a default"
            )[:TEXT_LENGTH_MAX]
        return f"it calls sys.exit({error.code!r})"[:TEXT_LENGTH_MAX]
    if name in _COMPILATION_ERRORS and len(lines) > 1:
        return f"{name}: {lines[-1]} ({lines[0].rstrip(':')})"[:TEXT_LENGTH_MAX]
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return ("out of memory: " + (lines[0] if lines else name))[:TEXT_LENGTH_MAX]
    if "does not require grad" in text:
        lines[0] += (
            "; forward runs without autograd: within `with torch.enable_grad():` take "
            "`x = x.detach().requires_grad_()` and return `torch.autograd.grad(loss, x)[0]` "
            "(docs/problems.md has a whole file under Gradients)"
        )
    forbidden = isinstance(error, PermissionError) and error.errno == errno.EPERM
    if forbidden or text.startswith("Ninja is required"):
        lines[0] += (
            "; a candidate may start no process, but by torch.utils.cpp_extension as its file is "
            "imported, or in its constructor"
        )
    torch = sys.modules.get("torch")
    if torch and isinstance(error, AttributeError) and text.startswith("module 'torch"):
        lines[0] += f"; this is PyTorch {torch.__version__}"
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


def _missing_module(error):
    """Returns the name of a module that is not installed, whose import failed; else None."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    name = error.name.split(".")[0]
    try:
        return None if importlib.util.find_spec(name) else name
    except (ImportError, ValueError):
        return name


def _why_cuda(error, line):
    """Returns how an exception shows that the file needs CUDA, where there is none; else None.
    `line`: of the file, where it was raised.
    """
    if isinstance(error, (NameError, SyntaxError)):
        return None
    text = describe_exception(error)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if _CUDA_FOLDERS.search(frame.f_code.co_filename):
            return text
        # torch's loader of extensions, with CUDA sources.
        loads = os.path.basename(frame.f_code.co_filename) == "cpp_extension.py"
        if loads and frame.f_locals.get("with_cuda"):
            return "it compiles CUDA sources"
    found = _compiler_error(error)
    if found:
        return text if _CUDA_HEADERS.search(found) else None
    return text if _CUDA_WORDS.search(text) or _CUDA_CHECKS.search(line) else None


def needs_cuda(why):
    """Returns the words for a file that needs CUDA, where there is none."""
    return (
        f"it needs CUDA, which is not here ({why}): judge it with --device cuda, on a machine with "
        "an NVIDIA GPU"
    )


def _is_lone(path):
    """Returns True for a candidate that is one file, not a folder's entry (candidate.path_in)."""
    entry = os.path.join(os.path.dirname(path), os.pardir, "entry")
    return os.path.basename(path) == "candidate.py" and not os.path.exists(entry)


@_careful("")
def _beside(error, path, line):
    """Returns what to do about files beside this one, where the exception shows that they lack."""
    if not _lacks_files(error, line):
        return ""
    is_problem = os.path.basename(os.path.dirname(path)) == "problem"
    return f"; {_FOLDER}" if _is_lone(path) else f"; {_ONE_FILE}" if is_problem else ""


def _lacks_files(error, line):
    if isinstance(error, FileNotFoundError):
        return bool(os.path.splitext(os.fsdecode(error.filename or ""))[1])
    if isinstance(error, ImportError):
        return line.lstrip().startswith("from .")
    return bool(_LACKS_HEADER.search(_compiler_error(error) or ""))


@_careful(None)
def _not_here(error, line, path):
    """Returns the words for an exception whose cause is that this machine lacks something, which
    says nothing about the file `path`; else None. `line`: of the file, where it was raised.
    """
    module = _missing_module(error)
    if module and (cuda_is_here or module not in _CUDA_MODULES):
        return (
            f"it imports the module {module}, which is not here (No module named '{module}'): "
            "install it for the Python that has PyTorch, or use --python; "
            + (_FOLDER if _is_lone(path) else "a file of one's own must be part of this one")
        )
    if module:
        return needs_cuda(f"it imports {module}")
    if sys.modules.get("torch"):
        from assay_host import newer_torch

        newer = newer_torch.lacking(error)
        if newer:
            return newer
    why = None if cuda_is_here else _why_cuda(error, line)
    return needs_cuda(why) if why else None


@_careful(("an exception that cannot be put into words", False))
def _explained(error, path):
    """Returns explain's words, and whether they tell of what this machine lacks."""
    line = line_in_file(error, path)
    place = os.path.basename(path) + (f" line {line}" if line is not None else "")
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{place}: not valid Python: {error.msg}", False
    text = linecache.getline(path, line) if line is not None else ""
    lacking = _not_here(error, text, path)
    said = lacking or describe_exception(error)
    if not lacking:
        said += _beside(error, path, text)
    return f"{place}: {said}", lacking is not None


def explain(error, path):
    """Returns 'softmax.py line 12: TypeError: ...': the place in the file, then the exception, or
    that it comes of what this machine lacks.
    """
    return _explained(error, path)[0]


def because(number, error, path, before="", after=""):
    """Returns the Failure of an exception of the file's own code: `before`, explain's words,
    `after`. Its number is NOT_HERE's where the exception comes of what this machine lacks.
    """
    text, lacking = _explained(error, path)
    if lacking:
        number = PROBLEM_NOT_HERE if number < CANDIDATE_LOAD else CANDIDATE_NOT_HERE
    of_extension = not lacking and _compiler_error(error) is not None
    return Failure(number, before + text + after, of_extension)


def because_of_forward(error, path, torch_version):
    """Returns the Failure of the reference's forward; says so if this PyTorch lacks an operator for
    a short dtype.
    """
    found = re.search(r"\"?(\w+)\"? not implemented for '(Half|BFloat16)'", str(error))
    if found:
        dtype = {"Half": "float16", "BFloat16": "bfloat16"}[found.group(2)]
        return Failure(
            PROBLEM_FORWARD,
            f"PyTorch {torch_version} has no {dtype} {found.group(1)} on the CPU: change the "
            "problem's dtype with --set where it has a constant for it, or use a newer PyTorch",
        )
    return because(PROBLEM_FORWARD, error, path, "forward fails: ")
