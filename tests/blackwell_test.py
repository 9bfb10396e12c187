"""The kernel for Blackwell that is there to be read compiles: nvcc for sm_100a, without a GPU."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNEL = ROOT / "kernels" / "nvfp4-gemv" / "blackwell.cu"
# What a reader is promised: the matrix unit, tensor memory, a pair of blocks.
INSTRUCTIONS = (
    "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X",
    "tcgen05.alloc.cta_group::2",
    "tcgen05.cp.cta_group::2",
    "tcgen05.ld.sync",
    "tcgen05.commit.cta_group::2",
)


def compiler():
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")


class Blackwell(unittest.TestCase):
    def build(self, what, folder):
        nvcc = compiler()
        if nvcc is None:
            self.skipTest("no nvcc here")
        known = subprocess.run([nvcc, "--list-gpu-arch"], capture_output=True, text=True)
        if "compute_100" not in known.stdout:
            self.skipTest("this nvcc does not know compute_100")
        to = pathlib.Path(folder) / "kernel"
        command = [nvcc, "-arch", "sm_100a", "-std=c++17", what, str(KERNEL), "-o", str(to)]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return to

    def test_it_is_compiled_to_machine_code(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertGreater(self.build("-cubin", folder).stat().st_size, 4096)

    def test_its_instructions_are_in_the_compilers_output(self):
        with tempfile.TemporaryDirectory() as folder:
            text = self.build("-ptx", folder).read_text()
            for instruction in INSTRUCTIONS:
                self.assertIn(instruction, text)


if __name__ == "__main__":
    unittest.main()
