"""Runs a candidate of the device form on the host: device.h stands for the GPU.

Functions with inline assembly are left out; device.h has others of the same names. Emulated are the
instructions that kernels/sparse-decode and its like use.
"""
import ctypes
import faulthandler
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "exploits" / "naive"))
import device_form  # noqa: E402

ELEMENT_BYTES = dict(device_form.ELEMENT_BYTES, int32=4, int8=1, uint8=1)
# A function at the outermost level, with its comment: up to the brace in the first column, or a
# one-liner.
FUNCTION = re.compile(
    r"(?:^template <[^\n]*>\n)?^DEVICE [^;{}]*\{(?:[^\n]*\}\n|.*?\n\}\n)", re.MULTILINE | re.DOTALL
)


def without_assembly(text):
    return FUNCTION.sub(lambda found: "" if "asm" in found.group() else found.group(), text)


def tensor_arguments(text, kernel):
    found = re.search(rf"\b{kernel}\(([^)]*)\)\s*\{{", text)
    return [" ".join(part.split()) for part in found.group(1).split(",")]


def program(text, scope, buffers):
    """The C++ program of all launches; `run(pointers, seed)` is its entry."""
    _, _, launches, macros, _ = device_form.read_lines(text)
    source = re.sub(
        r"extern __shared__[^;]*unsigned char (\w+)\[\];",
        r"unsigned char* const \1 = emulated::Shared();",
        without_assembly(text),
    )
    lines = ['#include "device.h"', *(f"#define {name} {scope[name]}" for name in macros), source]
    lines.append('extern "C" void run(void* const* at, unsigned seed) {')
    lines.append("  emulated::machine.order.seed(seed);")
    names = list(buffers)
    for kernel, given in launches:
        sizes = {
            key: ", ".join(
                str(device_form.value_of(part, scope)) for part in (given[key] + ["1", "1"])[:3]
            )
            for key in ("grid", "block")
        }
        cluster = device_form.value_of(given.get("cluster", ["1"])[0], scope)
        shared = device_form.value_of(given.get("shared", "0"), scope)
        arguments = []
        for declared, name in zip(tensor_arguments(text, kernel), given["args"], strict=True):
            if name in buffers:
                kind = re.sub(r"\s*\w+$", "", declared)
                arguments.append(f"({kind})at[{names.index(name)}]")
            else:
                arguments.append(str(device_form.value_of(name, scope)))
        call = f"{kernel}({', '.join(arguments)})"
        lines.append(
            f"  emulated::Launch({{{sizes['grid']}}}, {{{sizes['block']}}}, {cluster}, {shared}, "
            f"[&] {{ {call}; }});"
        )
    return "\n".join([*lines, "}", ""])


def run(rung, tensors, folder, seed=1):
    """Runs all launches in a process of their own, so that a fault of theirs ends no other.

    `tensors`: the problem's, by name; results are written into `out...`. Raises RuntimeError.
    """
    text = rung.read_text()
    for tensor in tensors.values():
        tensor.share_memory_()
    definitions, scratches, _, _, _ = device_form.read_lines(text)
    scope = dict(device_form.NAMES)
    scope |= {name: device_form.Shape(tensor) for name, tensor in tensors.items()}
    for name, value in definitions:
        scope[name] = device_form.value_of(value, scope)
    buffers = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    kept = []
    for name, element, count in scratches:
        size = device_form.value_of(count, scope) * ELEMENT_BYTES[element]
        kept.append(ctypes.create_string_buffer(b"\x7f" * size, size + 64))
        buffers[name] = (ctypes.addressof(kept[-1]) + 63) // 64 * 64
    source, library = folder / f"{rung.stem}.cpp", folder / f"{rung.stem}_{seed}.so"
    source.write_text(program(text, scope, buffers))
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-fno-strict-aliasing", "-w"]
        + ["-fno-gnu-unique", "-fvisibility-inlines-hidden"]
        + [f"-I{HERE}", str(source), "-o", str(library)],
        check=True,
    )
    pointers = (ctypes.c_void_p * len(buffers))(*buffers.values())
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # a fault that a test asks for needs no traceback
        ctypes.CDLL(str(library)).run(pointers, seed)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status != 0:
        raise RuntimeError(f"{rung.name} ended with status {status}")
