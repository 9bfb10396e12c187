"""Every header compiles by itself, and every shipped kernel compiles: syntax and warnings only.

Usage: compile_alone.py --build FOLDER [--share K/N]. Kernels get the flags that Assay compiles
candidates with, from g++ and, where it is installed, clang++; kernel.h is also compiled as C11 and
C++17. With a share (also from $ASSAY_SHARE) the Kth of N shares is compiled, K from 0, and what the
change touches.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "exploits"))
import touched  # noqa: E402

# Without AVX-512 g++ says that a vector of it would be handed over otherwise with it.
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-psabi"]


def header_commands(build):
    includes = [
        f"-I{ROOT}/src",
        f"-I{ROOT}/include",
        f"-I{ROOT}/host/native",
        f"-I{build}",
        f"-I{build}/generated",
        '-DASSAY_SOURCE_DIRECTORY="."',
        '-DASSAY_BUILD_DIRECTORY="."',
    ]
    for folder in ("src", "host"):
        for header in sorted((ROOT / folder).rglob("*.h")):
            if "lean" in header.parts:  # stands before PyTorch's, which are not here in full
                continue
            yield header, ["g++", "-std=c++23", f"-I{header.parent}", *includes, "-x", "c++"]
    for header in sorted((ROOT / "include").rglob("*.h")):
        yield header, ["g++", "-std=c++17", f"-I{ROOT}/include", "-x", "c++"]
        yield header, ["gcc", "-std=c11", f"-I{ROOT}/include", "-x", "c"]


def kernel_commands():
    # Device code is NVRTC's: scripts/test-gpu compiles it.
    for kernel in sorted(
        path for path in (ROOT / "kernels").rglob("*.c*") if path.suffix in (".c", ".cpp")
    ):
        text = kernel.read_text()
        flags = re.findall(r"^\s*(?://!|/\*!) flags (.*?)(?:\*/)?$", text, re.M)
        tuned = re.findall(r"^\s*(?://!|/\*!) tune\s+(\w+)\s*=\s*(-?\d+)", text, re.M)
        flags += [f"-D{name}={value}" for name, value in tuned]
        is_c = kernel.suffix == ".c"
        for compiler in ("gcc", "clang") if is_c else ("g++", "clang++"):
            if shutil.which(compiler):
                yield kernel, [
                    compiler,
                    "-O1",
                    "-march=native",
                    "-std=c11" if is_c else "-std=c++20",
                    f"-I{ROOT}/include",
                    # Nothing is linked here.
                    *[flag for flag in " ".join(flags).split() if not flag.startswith("-l")],
                ]


def compile_one(job, folder):
    source, command = job
    if source.suffix == ".h":
        # Through a file of one line, so that '#pragma once in main file' stays quiet.
        wrapper = pathlib.Path(folder) / f"{abs(hash((str(source), command[0])))}.txt"
        wrapper.write_text(f'#include "{source}"\n')
        target = wrapper
    else:
        target = source
    command = [*command, *WARNINGS, "-fsyntax-only", str(target)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if result.returncode == 0:
        return None
    return f"{os.path.relpath(source, ROOT)} ({command[0]}):\n{result.stderr[:2000]}"


def share_of(jobs, share):
    """Those jobs of one share, 'K/N', and those whose sources the change touches."""
    part, parts = map(int, share.split("/"))
    changed = {ROOT / name for name in touched.changed_files(touched.base_of_change())}
    return [
        (source, command)
        for source, command in jobs
        if source in changed or zlib.crc32(str(source.relative_to(ROOT)).encode()) % parts == part
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--share", default=os.environ.get("ASSAY_SHARE") or "0/1")
    arguments = parser.parse_args()
    jobs = share_of([*header_commands(arguments.build), *kernel_commands()], arguments.share)
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder) / "broken.cpp"
        broken.write_text("static int Unused(Missing x);\n")
        if compile_one((broken, ["g++"]), folder) is None:
            print("compile_alone: a broken file compiles: this check says nothing")
            return 1
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            failures = list(filter(None, pool.map(lambda job: compile_one(job, folder), jobs)))
    for failure in failures:
        print(failure)
    print(f"compile_alone: {len(jobs)} compiled, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
