"""Garbage candidates from a seed: the same seed and index give the same file, anywhere."""

import pathlib
import random as random_module
import re

import nasty

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES_MAX = 1 << 20  # a larger file is a wrong request, not a candidate
KERNELS = sorted(path for path in (ROOT / "kernels").rglob("*.c*") if path.suffix in (".c", ".cpp"))
SOFTMAX = [path for path in KERNELS if path.parent.name == "softmax"]
MODELS = sorted(
    path for path in (ROOT / "kernels").rglob("*.py") if "import triton" not in path.read_text()
)
OPERATORS = list("+-*/%<>=!&|^~?:;,.(){}[]#@$'\"\\")
WORDS = ["int", "float", "return", "0", "-1", "x", "y", "for", "if", "static_assert", "template"]
PYTHON_WORDS = ["def", "class", "return", "None", "self", "torch", "lambda", "0", "await", "yield"]


def directive(random):
    flag = random.choice(
        ["-O0", "-Ofast", "-march=none", "-include/dev/zero", "-Wl,-T", "-fplugin=x", "-DX=", "-D"]
        + ["-std=c++98", "--param", "-mno-sse", "-mavx9", "-pthread", "-E", "-c", "@/etc/passwd"]
    )
    head = random.choice(["//! flags", "//!flags", "//! compiler", "//! CFLAGS:", "/*! flags"])
    tail = "".join(chr(random.randrange(1, 0x250)) for _ in range(random.randrange(0, 30)))
    return f"{head} {flag} {tail if random.random() < 0.3 else ''}\n"


def edit_tokens(random, text, words):
    """A few tokens deleted, doubled, swapped or replaced."""
    tokens = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(random.choice([1, 1, 2, 5, 40])):
        if not tokens:
            break
        at = random.randrange(len(tokens))
        action = random.randrange(6)
        if action == 0:
            del tokens[at : at + random.choice([1, 1, 1, 20])]
        elif action == 1:
            tokens[at:at] = tokens[at : at + random.choice([1, 1, 30])] * random.choice([1, 1, 50])
        elif action == 2:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif action == 3:
            tokens[at] = random.choice(OPERATORS)
        elif action == 4:
            tokens[at] = random.choice(words)
        else:
            tokens[at] = str(random.choice([0, -1, 1 << 31, 1 << 63, 1e308, 10**30]))
    return "".join(tokens)


def edit_bytes(random, data):
    """Bit flips, cuts, and the encodings that trip readers of text."""
    data = bytearray(data)
    action = random.randrange(8)
    if action == 0:
        for _ in range(random.choice([1, 3, 100])):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif action == 1:
        del data[random.randrange(len(data)) :]
    elif action == 2:
        data[random.randrange(len(data))] = 0
    elif action == 3:
        data = data.replace(b"\n", random.choice([b"\r\n", b"\r", b"\\\n", b"\x0b"]))
    elif action == 4:
        at = random.randrange(len(data))
        data[at:at] = random.choice([b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf5\x90"])
    elif action == 5:
        data = random.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\x1a"]) + data
    elif action == 6:
        data = bytearray(data.decode("utf-8", "replace").encode("utf-16"))
    else:
        at = random.randrange(len(data))
        data[at:at] = random.randbytes(random.choice([1, 50, 5000]))
    return bytes(data)


def huge(random):
    """Up to the size that a candidate may have, or far more once it is compiled."""
    depth = random.choice([200, 3000, 60000])
    entry = nasty.CPP_ENTRY.replace("CALL", "0")
    head = "#include <assay/kernel.h>\n#include <cmath>\n#include <limits>\n#include <algorithm>\n"
    head += "static void nasty() {}\n"
    texts = [
        head + entry + "//" + "x" * (BYTES_MAX - 3000),
        head + entry + "\n" * 900_000,
        head + entry + "int v = " + "(" * depth + "1" + ")" * depth + ";\n",
        head + entry + "{" * depth + "}" * depth,
        head + entry + "".join(f"int v{i};\n" for i in range(60_000)),
        head + entry + f"char large[{random.choice([1, 3, 9])}ull << 30] = {{1}};\n",
        head
        + "template <int N> struct T { enum { v = T<N + 1>::v }; };\nint v = T<0>::v;\n"
        + entry,
        "#include __FILE__\n" + head + entry,
        head + '#include "/dev/stdin"\n#include "/proc/self/mem"\n' + entry,
        head + 'asm(".incbin \\"/proc/self/environ\\"; .rept 100000000; .quad 0; .endr");' + entry,
        head
        + "#define A(x) x x x x x x x x\n#define B A(A(A(A(A(A(A(A(A(A(1;))))))))))\nB\n"
        + entry,
        head + "constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        "constexpr long v = f(60);\n" + entry,
        head + "#error " + "\\x1b[2J" * 3000 + '\n#pragma message "\x1b]0;x\x07"\n' + entry,
    ]
    return random.choice(texts).encode()


def huge_python(random):
    depth = random.choice([150, 3000, 100_000])
    model = MODELS[0].read_text()
    return random.choice(
        [
            model + "#" + "x" * (BYTES_MAX - 3000),
            model + "v = " + "(" * depth + ")" * depth + "\n",
            model + "v = " + "-" * depth + "1\n",
            model + "".join(" " * i + "if 1:\n" for i in range(120)),
            model + "v = " + "+".join(["1"] * 100_000) + "\n",
            model + "v = 10 ** 10 ** 7\n",
            model + "v = [0] * (1 << 40)\n",
            model + "v" + ".a" * 50_000 + "\n",
        ]
    ).encode()


def bogus_entry(random):
    """An assay_kernel_v1 that ASSAY_KERNEL did not make."""
    words = ", ".join(str(random.choice([0, 1, 2, 2048, 1 << 40, -1])) for _ in range(8))
    return (
        f'extern "C" __attribute__((visibility("default"))) long assay_kernel_v1['
        f"{random.choice([1, 8, 4096])}] = {{{words.split(',')[0]}}};\n"
        f'extern "C" __attribute__((visibility("default"))) long extra[8] = {{{words}}};\n'
    ).encode()


def make_native(random):
    kind = random.choice(
        ["bytes", "tokens", "tokens", "tokens", "encoding", "encoding", "directives", "huge"]
        + ["entry"]
        + ["nasty"] * 9
    )
    suffix = random.choice([".cpp", ".cpp", ".cpp", ".c", ".cc"])
    source = random.choice(random.choice([KERNELS, SOFTMAX]))
    if kind == "bytes":
        size = random.choice([0, 1, 100, 10_000, BYTES_MAX])
        return kind, "random bytes", suffix, random.randbytes(size)
    if kind == "tokens":
        text = edit_tokens(random, source.read_text(), WORDS)
        return kind, source.parent.name, source.suffix, text.encode()
    if kind == "encoding":
        return kind, source.parent.name, source.suffix, edit_bytes(random, source.read_bytes())
    if kind == "directives":
        lines = "".join(directive(random) for _ in range(random.choice([1, 2, 70])))
        return kind, source.parent.name, source.suffix, (lines + source.read_text()).encode()
    if kind == "huge":
        return kind, "huge", ".cpp", huge(random)
    if kind == "entry":
        return kind, "bogus entry", ".cpp", bogus_entry(random)
    what, text = nasty.native(random)
    return kind, what, ".cpp", text.encode()


def make_python(random):
    kind = random.choice(["bytes", "tokens", "tokens", "encoding", "huge"] + ["nasty"] * 5)
    source = random.choice(MODELS)
    if kind == "bytes":
        return kind, "random bytes", ".py", random.randbytes(random.choice([0, 1, 100, BYTES_MAX]))
    if kind == "tokens":
        text = edit_tokens(random, source.read_text(), PYTHON_WORDS)
        return kind, source.parent.name, ".py", text.encode("utf-8", "replace")
    if kind == "encoding":
        return kind, source.parent.name, ".py", edit_bytes(random, source.read_bytes())
    if kind == "huge":
        return kind, "huge", ".py", huge_python(random)
    what, text = nasty.python(random)
    return kind, what, ".py", text.encode("utf-8", "surrogatepass")


def make(seed, index):
    """(kind, what it does, suffix, content) of one candidate."""
    random = random_module.Random(f"{seed} {index}")
    native = random.random() < 0.72
    kind, what, suffix, content = (make_native if native else make_python)(random)
    return ("native " if native else "python ") + kind, what, suffix, content[:BYTES_MAX]
