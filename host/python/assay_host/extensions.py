"""Carries a candidate's compiled code (torch's load_inline, Triton) from the builder to the hosts.

The builder packs the extensions folder; a host unpacks it to the same path. Older PyTorch writes an
extension's sources anew at each load, so ninja would compile again: here a build counts as finished
if sources and build file are unchanged, whatever their times. Triton's cache lies in the same
folder.
"""

import glob
import hashlib
import importlib.util
import io
import os
import re
import sys
import tarfile

_STAMP = ".assay_built"
# The tar's first file, if an extension was built: "lean" or "full" (src/builders/lean_headers.h).
_HEADERS = ".assay_headers"
_INDUCTOR = re.compile(r"\btorch\.compile\b|\b_inductor\b")
_LEFT_OUT = re.compile(r"(\.o|\.o\.d|/lock|/\.ninja_log|/\.ninja_deps)$|^home/\.nv/")


def folder(root):
    return os.path.join(root, "tmp", "extensions")


def _triton_folder(root):
    return os.path.join(folder(root), "triton")


def _home(root):
    return os.path.join(folder(root), "home")


def prepare(root):
    """Points torch and Triton at the folder, before anything of the candidate is imported."""
    os.makedirs(folder(root), exist_ok=True)
    # A virtual environment may bring its own ninja.
    path = os.environ.get("PATH", "/usr/bin:/bin")
    os.environ["PATH"] = f"{path}:{os.path.dirname(sys.executable)}"
    os.environ["TORCH_EXTENSIONS_DIR"] = folder(root)
    # Candidates with a build folder of their own have it below the home folder.
    os.environ["HOME"] = _home(root)
    os.makedirs(_home(root), exist_ok=True)
    os.environ["TRITON_CACHE_DIR"] = _triton_folder(root)
    # Of code that torch.compile generated, with what it tuned in its first call.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder(root), "inductor")


def prefer_ptxas_of_inductor(path):
    """Has Triton use PyTorch's own ptxas, where there is one and the candidate's text has to do
    with torch.compile: Inductor does so from its first kernel on. The keys of Triton's cache hold
    the assembler's version, so that a host must have the builder's from the start.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    found = importlib.util.find_spec("torch") if _INDUCTOR.search(text) else None
    if found is None or not found.origin:
        return
    tool = os.path.join(os.path.dirname(found.origin), "bin", "ptxas")
    if os.path.isfile(tool) and os.access(tool, os.X_OK):
        os.environ.setdefault("TRITON_PTXAS_PATH", tool)


def read_sources(build_folder):
    """Returns the rule and the content of each source that build.ninja names: ("compile", b"...").
    Errors: OSError, UnicodeDecodeError.
    """
    with open(os.path.join(build_folder, "build.ninja"), encoding="utf-8") as file:
        text = file.read()
    sources = []
    for rule, line in re.findall(r"(?m)^build [^:\n]+: (compile|cuda_compile) (.+)$", text):
        path = line.strip().replace("$ ", " ").replace("$:", ":")
        with open(os.path.join(build_folder, path), "rb") as file:
            sources.append((rule, file.read()))
    return sources


def _digest(build_folder):
    """Returns the SHA-256 of build.ninja and the sources that it names; None if they cannot be
    read.
    """
    digest = hashlib.sha256()
    try:
        with open(os.path.join(build_folder, "build.ninja"), "rb") as file:
            digest.update(file.read())
        for _, content in read_sources(build_folder):
            digest.update(content + b"\0")
    except (OSError, UnicodeDecodeError):
        return None
    return digest.hexdigest()


def _build_folders(root):
    return [place for place, _, names in os.walk(folder(root)) if "build.ninja" in names]


def hold_cuda(root):
    """Returns True if torch's loader has built an extension with CUDA sources."""
    for build_folder in _build_folders(root):
        with open(os.path.join(build_folder, "build.ninja"), encoding="utf-8") as file:
            built = glob.glob(os.path.join(build_folder, "*.so"))
            if built and re.search(r"(?m)^build [^:\n]+: cuda_compile ", file.read()):
                return True
    return False


def note_headers(root, which):
    """Notes the headers that an extension was built with; "full" stays once noted."""
    if _noted_headers(root) != "full":
        with open(os.path.join(folder(root), _HEADERS), "w", encoding="ascii") as file:
            file.write(which)


def _noted_headers(root):
    try:
        with open(os.path.join(folder(root), _HEADERS), encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _pack_note(archive, which):
    content = which.encode()
    entry = tarfile.TarInfo(_HEADERS)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def pack(root, path):
    """Writes the folder as a tar, whole or not at all; an empty one if nothing was built. Leaves
    out objects and locks.
    """
    for build_folder in _build_folders(root):
        digest = _digest(build_folder)
        if digest and glob.glob(os.path.join(build_folder, "*.so")):
            with open(os.path.join(build_folder, _STAMP), "w", encoding="ascii") as file:
                file.write(digest)

    def keep(entry):
        return (
            None if _LEFT_OUT.search(entry.name) or not (entry.isfile() or entry.isdir()) else entry
        )

    unfinished = path + ".unfinished"
    with tarfile.open(unfinished, "w") as archive:
        noted = _noted_headers(root)
        if noted is not None:
            _pack_note(archive, noted)
        used = os.path.isdir(_home(root)) and os.listdir(_home(root))
        left_out = {_HEADERS} if used else {_HEADERS, os.path.basename(_home(root))}
        for name in sorted(set(os.listdir(folder(root))) - left_out):
            archive.add(os.path.join(folder(root), name), arcname=name, filter=keep)
    os.replace(unfinished, path)


def unpack(path, root):
    """Unpacks pack()'s tar, with file times. Returns True if torch's loader made any of it."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return False
    with tarfile.open(path, "r:") as archive:
        members = [member for member in archive.getmembers() if member.isfile() or member.isdir()]
        archive.extractall(folder(root), members)
    return bool(_build_folders(root))


def skip_finished_builds():
    """Makes torch's loader use an unpacked build as it is."""
    from torch.utils import cpp_extension

    run_ninja = getattr(cpp_extension, "_run_ninja_build", None)
    if run_ninja is None:
        return  # a loader without that step: ninja itself compares times, which the tar has kept

    # No compiler will be called, and a candidate's host cannot start one to ask for its version.
    cpp_extension.verify_ninja_availability = lambda: None
    if hasattr(cpp_extension, "get_compiler_abi_compatibility_and_version"):
        version = cpp_extension.TorchVersion("0.0.0")
        cpp_extension.get_compiler_abi_compatibility_and_version = lambda _: (True, version)

    def run_unless_finished(build_directory, *args, **keywords):
        try:
            with open(os.path.join(build_directory, _STAMP), encoding="ascii") as file:
                finished = file.read() == _digest(build_directory)
        except OSError:
            finished = False
        if not finished:
            run_ninja(build_directory, *args, **keywords)

    cpp_extension._run_ninja_build = run_unless_finished


def ask_tools_for_triton(root, capability):
    """Lets Triton run the system's tools that its cache keys depend on, and remember their answers:
    a host that is locked down can start none. Loads nothing of the cache, which is foreign.
    `capability`: the device's, (9, 0).
    """
    if not os.path.isdir(_triton_folder(root)):
        return
    for ask in (_ask_compiler, _ask_platform, _ask_driver):
        try:
            ask(10 * capability[0] + capability[1])
        except Exception:  # of another release: Triton says what it lacks when the candidate runs
            pass


def _ask_compiler(capability):
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    make_backend(GPUTarget("cuda", capability, 32)).hash()


def _ask_platform(_capability):
    from triton.runtime import build

    build.platform_key()


def _ask_driver(_capability):
    from triton.backends.nvidia import driver

    for name in ("platform_key", "library_dirs"):
        if hasattr(driver, name):
            getattr(driver, name)()
