"""The descriptors that rungs hand to Hopper's matrix unit, without a GPU.

Each rung is one file, so its encoder is cut out of it and compiled for the host. What it gives is
taken apart by the table of fields in the PTX ISA ("Asynchronous Warpgroup Level Matrix Shared
Memory Layout", "Matrix Descriptor Format"). A model of what the unit then reads is compared with a
model of what the copy engine wrote.
"""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The fields that are not 0 in any descriptor of ours, and those that must be: lowest bit, width.
FIELDS = {
    "start": (0, 14),
    "zero_a": (14, 2),
    "leading": (16, 14),
    "zero_b": (30, 2),
    "stride": (32, 14),
    "zero_c": (46, 3),
    "base_offset": (49, 3),
    "zero_d": (52, 10),
    "swizzle": (62, 2),
}
SWIZZLE_128 = 1
TILES = [1024 * number for number in (0, 1, 63, 64, 226)]  # up to the end of shared memory
ROWS = (64, 128, 160)  # of a tile
STEP_BYTES = 32  # along a row, of one instruction: 16 numbers of 2 bytes, or 8 of 4
ENCODER = re.compile(
    r"^(?:template <int rows>\n)?[^\n;]*\bDescriptor (?:DescriptorOf|Columns)\([^)]*\) {.*?\n}\n",
    re.M | re.S,
)
CONSTANT = re.compile(r"^constexpr \w+ (?:[^;\n]*, )?(?:kStep|kChannels|kBoxBytes) = [^;]*;", re.M)
HEAD = """#include <cstdio>
#include <initializer_list>
#define DEVICE inline
#define __host__
#define __device__
using Address = unsigned;
using Descriptor = unsigned long long;
void Say(const char* rung, const char* what, int rows, Address tile, int step, Descriptor value) {
  std::printf("%s %s %d %u %d %llu\\n", rung, what, rows, tile, step, value);
}
"""


def rungs():
    paths = [*sorted((ROOT / "kernels").rglob("*.cu")), ROOT / "src/gpu/ceiling_wgmma.cu"]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    return {name: text for name, text in texts.items() if "wgmma.mma_async" in text}


def calls(text):
    """(what, tile's rows or 0, expression of tile and step, steps) of an encoder's uses."""
    if "DescriptorOf(Address tile, unsigned next)" in text:
        for rows in ROWS:
            yield "along", rows, f"DescriptorOf(tile, 16) + Columns<{rows}>(step)", 8
            across = f"DescriptorOf(tile, {rows} * 128) + step * (2048 / 16)"
            yield "across", rows, across, rows // 16
    elif "DescriptorOf(Address weights, int step)" in text:
        yield "along", 96, "DescriptorOf(tile, step)", 12
    else:
        yield "along", 64, "DescriptorOf(tile) + step * kStep", 4


def program_of(number, name, text):
    """A namespace with a rung's encoders and a function that prints descriptors."""
    parts = CONSTANT.findall(text) + ENCODER.findall(text)
    body = "".join(
        f"  for (int step = 0; step < {steps}; ++step)\n"
        f'    for (const Address tile : {{{", ".join(map(str, TILES))}}})\n'
        f'      Say("{name}", "{what}", {rows}, tile, step, {expression});\n'
        for what, rows, expression, steps in calls(text)
    )
    return f"namespace rung{number} {{\n" + "\n".join(parts) + f"\nvoid SayAll() {{\n{body}}}\n}}\n"


def descriptors():
    """(rung, what, rows, tile, step, descriptor) of every rung, for several tiles."""
    texts = rungs()
    source = HEAD + "".join(program_of(i, *item) for i, item in enumerate(texts.items()))
    said = "".join(f"  rung{i}::SayAll();\n" for i in range(len(texts)))
    source += f"int main() {{\n{said}}}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "descriptors"
        path.with_suffix(".cc").write_text(source)
        command = ["g++", "-std=c++17", "-O0", "-o", path, path.with_suffix(".cc")]
        subprocess.run(command, check=True, timeout=60)
        run = subprocess.run([path], check=True, capture_output=True, text=True, timeout=10)
    for line in run.stdout.splitlines():
        rung, what, *numbers = line.split()
        yield rung, what, *map(int, numbers)


ALL = list(descriptors())


def fields(descriptor):
    return {name: descriptor >> low & (1 << width) - 1 for name, (low, width) in FIELDS.items()}


def swapped(address):
    """Chunks of 16 bytes are swapped by the address's bits 7 to 9: 128-byte swizzling."""
    return address ^ (address >> 7 & 7) << 4


def read_address(given, what, line, byte):
    """Where the unit reads byte `byte` of line `line` of what one instruction takes.

    Lines are rows of a product along the sum; across it, they are steps of the sum, and a byte's
    place tells the column.
    """
    address = 16 * given["start"] + line // 8 * 16 * given["stride"] + line % 8 * 128
    if what == "across":
        address += byte // 128 * 16 * given["leading"]
        byte %= 128
    return swapped(address + byte)


def written_address(tile, rows, row, byte):
    """Where the copy engine put byte `byte` of a row: boxes of 128 bytes by `rows`, one by one."""
    return swapped(tile + byte // 128 * rows * 128 + row * 128 + byte % 128)


class Descriptors(unittest.TestCase):
    def test_every_rung_with_wgmma_has_its_encoder_here(self):
        names = {rung for rung, *_ in ALL}
        self.assertEqual(names, set(rungs()))
        self.assertGreaterEqual(len(names), 35)
        for rung, text in rungs().items():
            # The steps that are compiled here are those that the rung takes.
            steps = r"\* kStep|Columns<\w+>\(step\).*\* \(2048 / 16\)|DescriptorOf\(weights, step\)"
            self.assertRegex(text, re.compile(steps, re.S), rung)

    def test_fields_stand_where_the_instruction_looks_for_them(self):
        for rung, what, rows, tile, step, descriptor in ALL:
            given = fields(descriptor)
            with self.subTest(rung=rung, what=what, rows=rows, tile=tile, step=step):
                self.assertEqual(given["swizzle"], SWIZZLE_128)
                self.assertEqual(16 * given["stride"], 1024)
                self.assertEqual(given["base_offset"], 0)
                self.assertFalse(any(given[name] for name in given if name.startswith("zero")))
                leading = rows * 128 if what == "across" else 16
                self.assertEqual(16 * given["leading"], leading)
                if step == 0:
                    self.assertEqual(16 * given["start"], tile)

    def test_the_unit_reads_what_the_copy_engine_wrote(self):
        for rung, what, rows, tile, step, descriptor in ALL:
            given = fields(descriptor)
            along = what == "along"
            with self.subTest(rung=rung, what=what, rows=rows, tile=tile, step=step):
                for line in range(rows if along else 16):
                    for byte in range(0, STEP_BYTES if along else 256, 16):
                        row = line if along else 16 * step + line
                        place = STEP_BYTES * step + byte if along else byte
                        self.assertEqual(
                            read_address(given, what, line, byte),
                            written_address(tile, rows, row, place),
                        )


if __name__ == "__main__":
    unittest.main()
