"""Tests of builds against a part of PyTorch's headers: what is tried, what is noted, and that the
headers themselves compile and bind, as they are and precompiled.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import unittest

from fake_judge import SUPPORT

from assay_host import extensions, lean, precompile

HEADERS = os.path.join(SUPPORT, "lean")
FOLDERS = f"/precompiled:{HEADERS}"

# As load_inline writes them.
CPP_SOURCE = """#include <torch/extension.h>
torch::Tensor twice(torch::Tensor x, std::vector<int64_t> sizes, c10::optional<double> scale) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous, not ", x.strides());
  auto y = torch::empty_like(x);
  auto z = torch::zeros({x.size(0), 3}, torch::dtype(torch::kFloat32).requires_grad(true));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
    const scalar_t* in = x.data_ptr<scalar_t>();
    scalar_t* out = y.data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = 2 * in[i];
  });
  using namespace torch::indexing;
  return at::linear(y.index({Slice(), None}), z.sum() * 0 + 1, z.t()) + torch::relu(y) / 2;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
m.def("twice", torch::wrap_pybind_function(twice), "twice");
}
"""


class Tried(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.makedirs(extensions.folder(self.root))
        self.build_folder = os.path.join(self.root, "build it")
        os.makedirs(self.build_folder)
        from torch.utils import cpp_extension

        self.cpp_extension = cpp_extension
        self.addCleanup(
            setattr, cpp_extension, "_run_ninja_build", cpp_extension._run_ninja_build
        )
        self.searched = []

    def write(self, **sources):
        lines = []
        for name, (rule, text) in sources.items():
            path = os.path.join(self.build_folder, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            lines.append(f"build {name}.o: {rule} {path.replace(' ', '$ ')}\n")
        with open(os.path.join(self.build_folder, "build.ninja"), "w", encoding="ascii") as file:
            file.writelines(lines)

    def build(self, *results):
        """Builds with a ninja that succeeds or fails; returns what the artifact says."""
        results = list(results)

        def run_ninja(_folder, verbose):
            self.assertFalse(verbose)
            self.searched.append(os.environ.get("CPATH"))
            if not results.pop(0):
                raise RuntimeError("error: no such name")

        self.cpp_extension._run_ninja_build = run_ninja
        lean.prefer(self.root, FOLDERS)
        self.cpp_extension._run_ninja_build(self.build_folder, False)
        product = os.path.join(self.root, "extensions.tar")
        extensions.pack(self.root, product)
        with tarfile.open(product) as archive:
            first = archive.getmembers()[0]
            self.assertEqual(first.name, ".assay_headers")
            self.assertEqual(first.offset_data, 512)
            return archive.extractfile(first).read().decode()

    def test_the_part_is_searched_first_and_only_while_it_builds(self):
        self.write(main=("compile", "twice(x);"), cuda=("cuda_compile", "twice(x);"))
        self.assertEqual(self.build(True), "lean")
        self.assertEqual(self.searched, [FOLDERS])
        self.assertNotIn("CPATH", os.environ)

    def test_a_build_that_fails_is_made_again_with_all_headers(self):
        self.write(main=("compile", "torch::something_rare(x);"))
        self.assertEqual(self.build(False, True), "full")
        self.assertEqual(self.searched, [FOLDERS, None])

    def test_an_error_is_that_of_all_headers(self):
        self.write(main=("compile", "+"))
        with self.assertRaises(RuntimeError):
            self.build(False, False)
        self.assertIsNone(extensions._noted_headers(self.root))

    def test_one_extension_with_all_headers_is_told(self):
        self.write(main=("compile", "twice(x);"))
        self.build(False, True)
        self.assertEqual(self.build(True), "full")

    def test_sources_that_need_all_headers_do_not_try_the_part(self):
        self.write(main=("compile", "TORCH_LIBRARY(mine, m) {}"))
        self.assertEqual(self.build(True), "full")
        self.assertEqual(self.searched, [None])

    def test_cuda_sources_get_the_parts_that_they_use(self):
        for text, part in (
            ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", "binding"),
            ("at::cat({x, y}, 1)", "lists"),
            ("OptionalCUDAGuard guard(device_of(x))", "lists"),
            ("at::globalContext()", "context"),
            ("options.requires_grad(true)", "factories"),
            ("at::cuda::getCurrentDeviceProperties()", "libraries"),
        ):
            self.searched.clear()
            self.write(main=("compile", text), cuda=("cuda_compile", text))
            self.assertEqual(self.build(True), "lean")
            self.assertEqual(self.searched, [f"{HEADERS}/parts/{part}:{FOLDERS}"])
            self.assertEqual(os.listdir(f"{HEADERS}/parts/{part}"), [f"assay_{part}.h"])

    def test_without_folders_nothing_changes(self):
        before = self.cpp_extension._run_ninja_build
        lean.prefer(self.root, "")
        self.assertIs(self.cpp_extension._run_ninja_build, before)


def has_headers():
    from torch.utils import cpp_extension

    return os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) and any(
        os.path.exists(os.path.join(path, "torch", "extension.h"))
        for path in cpp_extension.include_paths()
    )


@unittest.skipUnless(has_headers(), "PyTorch's or Python's headers are missing")
class Headers(unittest.TestCase):
    def compile(self, source, folders, *flags):
        """Compiles as torch's loader does; returns what GCC says of the headers that it reads."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "main.cpp")
            with open(path, "w", encoding="ascii") as file:
                file.write(source)
            command = [*precompile.loader_command(), "-DTORCH_EXTENSION_NAME=twice", *flags]
            done = subprocess.run(
                [*command, "-H", "-c", path, "-o", "/dev/null"],
                env={"PATH": "/usr/bin:/bin", "CPATH": folders},
                capture_output=True,
                text=True,
                timeout=280,
            )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stderr

    def test_what_extensions_use_compiles(self):
        read = self.compile(CPP_SOURCE, HEADERS)
        self.assertIn(os.path.join(HEADERS, "torch", "extension.h"), read)
        self.assertNotIn("torch/nn/module.h", read)

    def test_the_precompiled_form_is_taken_where_flags_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            headers, made = os.path.join(folder, "headers"), os.path.join(folder, "made")
            os.makedirs(os.path.join(headers, "torch"))
            with open(os.path.join(headers, "torch", "extension.h"), "w", encoding="ascii") as file:
                file.write("#include <features.h>\nint twice(int);\n")
            script = precompile.__file__
            command = [sys.executable, "-s", script, headers, made]
            subprocess.run(command, check=True, timeout=280, capture_output=True)
            source = "#include <torch/extension.h>\nint four() { return twice(2); }\n"
            for flags, form in (([], "plain"), (["-O2"], "optimised")):
                read = self.compile(source, f"{made}:{headers}", *flags)
                self.assertIn(f"! {made}/torch/extension.h.gch/{form}.gch", read)
            read = self.compile(source, f"{made}:{headers}", "-mavx2")
            self.assertNotIn("! ", read)


if __name__ == "__main__":
    unittest.main()
