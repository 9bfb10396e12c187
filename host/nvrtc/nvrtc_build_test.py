"""Tests nvrtc_build as the builder calls it. On a machine with NVRTC it compiles the judge's
kernels, and sources with errors; without NVRTC those tests are skipped and say so.
"""

import glob
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.join(os.environ["ASSAY_SUPPORT"], "nvrtc_build")
TOOLKIT = os.environ.get("CUDA_HOME", "/usr/local/cuda")
LIBRARIES = sorted(glob.glob(f"{TOOLKIT}/lib64/libnvrtc.so.[0-9][0-9]"))
JUDGE_KERNELS = ROOT / "src" / "gpu" / "judge_kernels.cu"
HEADER = struct.Struct("<8sIIQ")
NAME_BYTES = 1024
MACHINES = {"sm_80": 80, "sm_89": 89, "sm_90a": 90, "sm_100a": 100}


def run(*arguments, **environment):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def read_image(path):
    """Returns the kernels' names and the cubin of a device image."""
    image = path.read_bytes()
    magic, count, _, size = HEADER.unpack_from(image)
    assert magic == b"ASYCUB01", magic
    names = [
        image[HEADER.size + i * NAME_BYTES : HEADER.size + (i + 1) * NAME_BYTES].rstrip(b"\0")
        for i in range(count)
    ]
    cubin = image[HEADER.size + count * NAME_BYTES :]
    assert len(cubin) == size, (len(cubin), size)
    return [name.decode() for name in names], cubin


class WithoutNvrtc(unittest.TestCase):
    def test_missing_arguments_are_told(self):
        for arguments in ((), ("lib.so", "a.cu", "a.out"), ("lib.so", "a.cu", "a.out", "kernel")):
            process = run(*arguments)
            self.assertEqual(process.returncode, 2, process)
            self.assertIn("usage: nvrtc_build", process.stderr)

    def test_a_library_that_is_not_there_is_told(self):
        process = run("/nowhere/libnvrtc.so.13", JUDGE_KERNELS, "/dev/null", "kernel", "--")
        self.assertEqual(process.returncode, 3, process)
        self.assertIn("/nowhere/libnvrtc.so.13", process.stderr)

    def test_a_library_that_is_not_nvrtc_is_told(self):
        process = run("libc.so.6", JUDGE_KERNELS, "/dev/null", "kernel", "--")
        self.assertEqual(process.returncode, 3, process)
        self.assertIn("libc.so.6 has no nvrtcVersion", process.stderr)


@unittest.skipUnless(LIBRARIES, f"no NVRTC under {TOOLKIT}")
class WithNvrtc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name) / "image"
        self.source = pathlib.Path(folder.name) / "kernel.cu"

    def build(self, source, kernels, *options, **environment):
        if not isinstance(source, pathlib.Path):
            self.source.write_text(source)
            source = self.source
        return run(LIBRARIES[-1], source, self.output, *kernels, "--", *options, **environment)

    def test_the_drivers_library_is_not_looked_for(self):
        # NVRTC opens it where it is, and a sandbox that builds has no device.
        process = self.build("__global__ void k() {}", ["k"], "-arch=sm_90a", LD_DEBUG="libs")
        self.assertEqual(process.returncode, 0, process.stderr[-2000:])
        self.assertIn("find library=libnvrtc-builtins", process.stderr)
        self.assertNotIn("find library=libcuda.so", process.stderr)

    def test_the_judges_kernels_compile_for_every_architecture(self):
        for architecture, machine in MACHINES.items():
            process = self.build(
                JUDGE_KERNELS,
                ["assay_fill", "assay_find_change"],
                f"-arch={architecture}",
                f"-I{ROOT / 'src'}",
                f"-I{TOOLKIT}/include",
            )
            self.assertEqual(process.returncode, 0, process.stderr)
            names, cubin = read_image(self.output)
            self.assertEqual(names, ["assay_fill", "assay_find_change"])
            self.assertEqual(cubin[:4], b"\x7fELF")
            flags = struct.unpack_from("<I", cubin, 48)[0]
            self.assertIn(machine, (flags & 0xFF, flags >> 8 & 0xFF), hex(flags))

    def test_templates_and_namespaces_get_their_names(self):
        source = "namespace a { template <int N> __global__ void k(float* y) { y[0] = N; } }"
        process = self.build(source, ["a::k<3>", "a::k<4>"], "-arch=sm_90")
        self.assertEqual(process.returncode, 0, process.stderr)
        names, cubin = read_image(self.output)
        self.assertEqual(len(set(names)), 2)
        for name in names:
            self.assertIn(name.encode(), cubin)

    def test_an_error_names_its_line(self):
        process = self.build("\n\n__global__ void k() { x = 1; }\n", ["k"], "-arch=sm_90")
        self.assertEqual(process.returncode, 1, process)
        self.assertIn(f"{self.source}(3): error: identifier", process.stderr)
        self.assertFalse(self.output.exists())

    def test_a_kernel_that_is_not_there_is_named(self):
        process = self.build("__global__ void k() {}", ["other"], "-arch=sm_90")
        self.assertEqual(process.returncode, 1, process)
        self.assertIn("other", process.stderr)

    def test_virtual_architectures_make_no_machine_code(self):
        process = self.build("__global__ void k() {}", ["k"], "-arch=compute_90")
        self.assertEqual(process.returncode, 1, process)
        self.assertIn("no machine code", process.stderr)

    def test_a_source_that_is_not_there_is_told(self):
        process = self.build(pathlib.Path("/nowhere/kernel.cu"), ["k"], "-arch=sm_90")
        self.assertEqual(process.returncode, 2, process)
        self.assertIn("cannot read /nowhere/kernel.cu", process.stderr)


if __name__ == "__main__":
    unittest.main()
