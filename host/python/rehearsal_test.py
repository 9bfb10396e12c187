"""Tests the builder's part of judging on a device, on the CPU: a call with made inputs, a call that
does not return, and the files for the hosts.
"""

import json
import os
import pickle
import shutil
import signal
import sys
import tarfile
import tempfile
import textwrap
import time
import types
import unittest
from unittest import mock

from fake_judge import failure, torch, wire

from assay_host import build, device, extensions, rehearsal


class Call(unittest.TestCase):
    DESCRIPTIONS = [
        {"kind": wire.TENSOR, "dtype": 3, "shape": [4, 5]},
        {"kind": wire.INT},
        {"kind": wire.TENSOR, "dtype": 5, "shape": [3]},
        {"kind": wire.BOOL},
        {"kind": wire.FLOAT},
    ]

    UNKNOWN = [None] * 5

    def test_inputs_have_the_described_shapes_and_harmless_values(self):
        seen, waited = [], []
        layouts = {0: ((4, 5), (5, 4), (1, 5))}
        rehearsal.call(
            lambda *arguments: seen.extend(arguments),
            self.DESCRIPTIONS,
            {"template": None, "layouts": layouts, "likenesses": self.UNKNOWN},
            "cpu",
            lambda: waited.append(True),
        )
        halves, count, indices, flag, scale = seen
        self.assertEqual((halves.dtype, tuple(halves.shape)), (torch.float16, (5, 4)))
        self.assertTrue(bool(((halves >= 0) & (halves <= 1)).all()))
        self.assertGreater(len(set(halves.flatten().tolist())), 5)
        self.assertEqual((indices.dtype, indices.tolist()), (torch.int64, [0, 0, 0]))
        self.assertEqual((count, flag, scale), (1, False, 1.0))
        self.assertEqual(waited, [True])

    def test_values_are_like_the_problems(self):
        # A candidate chooses its kernels by lengths: of zeros it would compile another one.
        problems = [
            torch.randn(4, 5) * 0.1 + 3,
            64,
            torch.tensor([7, 0, 1024]),
            True,
            0.25,
        ]
        seen = []
        likenesses = [rehearsal.likeness(value) for value in problems]
        record = {"template": None, "layouts": {}, "likenesses": pickle.loads(
            pickle.dumps(likenesses)
        )}  # fmt: skip
        rehearsal.call(
            lambda *arguments: seen.extend(arguments), self.DESCRIPTIONS, record, "cpu", list
        )
        halves, count, lengths, flag, scale = seen
        self.assertEqual((count, lengths.tolist(), flag, scale), (64, [7, 0, 1024], True, 0.25))
        self.assertEqual((halves.dtype, lengths.dtype), (torch.float16, torch.int64))
        low, high = float(problems[0].min()) - 0.01, float(problems[0].max()) + 0.01
        self.assertTrue(bool(((halves >= low) & (halves <= high)).all()))

    def test_a_large_table_of_integers_is_known_by_its_range(self):
        table = torch.arange(300).repeat(300).reshape(300, 300) + 5
        self.assertEqual(rehearsal.likeness(table), ("range", 5, 304))
        made = rehearsal._made(
            {"kind": wire.TENSOR, "dtype": 5, "shape": [300, 300]}, ("range", 5, 304), "cpu"
        )
        self.assertEqual((made.min() >= 5, made.max() <= 304, made.unique().numel() > 200),
                         (True, True, True))  # fmt: skip

    def test_what_has_no_range_has_no_likeness(self):
        for value in (torch.tensor([1.0, float("inf")]), torch.zeros(0), "mean"):
            self.assertIsNone(rehearsal.likeness(value))

    def test_nested_arguments_come_as_the_problem_has_them(self):
        seen = []
        template = ("tuple", [("list", [("leaf", 0), ("leaf", 1)]), ("constant", "mean")])
        rehearsal.call(
            lambda pair, mode: seen.append((len(pair), mode)),
            self.DESCRIPTIONS[:2],
            {"template": template, "layouts": {}, "likenesses": self.UNKNOWN},
            "cpu",
            lambda: None,
        )
        self.assertEqual(seen, [(2, "mean")])

    def test_what_goes_wrong_names_the_candidates_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "candidate.py")
            with open(path, "w", encoding="ascii") as file:
                file.write("def forward(x):\n    raise ValueError('no')\n")
            names = {}
            with open(path, encoding="ascii") as file:
                exec(compile(file.read(), path, "exec"), names)
            said = ""
            try:
                record = {"template": None, "layouts": {}, "likenesses": [None]}
                rehearsal.call(
                    names["forward"], self.DESCRIPTIONS[:1], record, "cpu", lambda: None
                )
            except ValueError as error:
                said = rehearsal.explain(error, path)
            self.assertEqual(
                said, "in the builder, its first call fails: candidate.py line 2: ValueError: no"
            )


class Await(unittest.TestCase):
    """_await over a child that stands for the build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.product = os.path.join(folder.name, "extensions.tar")
        self.said = []

    def after(self, work):
        child = os.fork()
        if child == 0:
            work()
            os._exit(0)
        return build._await(child, self.product, self.said.append)

    def pack(self):
        with open(self.product, "wb"):
            pass

    def test_a_build_without_trouble_says_nothing(self):
        self.assertEqual(self.after(self.pack), 0)
        self.assertEqual(self.said, [])

    def test_a_build_that_packed_nothing_keeps_its_status(self):
        self.assertEqual(self.after(lambda: os._exit(1)), 1)

    def test_what_was_packed_stands_where_the_call_ends_the_process(self):
        def crash():
            self.pack()
            os.kill(os.getpid(), signal.SIGKILL)

        self.assertEqual(self.after(crash), 0)
        self.assertEqual(self.said, ["in the builder, its first call ends with signal 9"])

    def test_a_call_that_does_not_end_is_stopped(self):
        longest, build._CALL_S_MAX = build._CALL_S_MAX, 0.2
        self.addCleanup(setattr, build, "_CALL_S_MAX", longest)

        def hang():
            self.pack()
            time.sleep(60)

        self.assertEqual(self.after(hang), 0)
        self.assertEqual(self.said, ["in the builder, its first call takes longer than 0.2 s"])


# Keeps what it would compile in its first call where Triton does.
FIRST_CALL = """
import os, torch
class ModelNew(torch.nn.Module):
    def forward(self, x, count):
        folder = os.path.join(os.environ["TRITON_CACHE_DIR"], "KEY%d" % x.shape[1])
        os.makedirs(folder)
        with open(os.path.join(folder, "kernel.cubin"), "w") as file:
            file.write("compiled")
        AFTER
"""


class Build(unittest.TestCase):
    """The whole builder, with the CPU in a device's place."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.tar = build._product(self.root)
        for name in ("candidate", "tmp"):
            os.makedirs(os.path.join(self.root, name))
        record = {"init_inputs": pickle.dumps([]), "template": None, "layouts": {}}
        record.update(likenesses=[None, None], default_dtype=torch.float32)
        self.write("init.pickle", pickle.dumps({**record, "class_name": "Model"}))

    def write(self, name, content):
        with open(os.path.join(self.root, "candidate", name), "wb") as file:
            file.write(content)

    def build(self, after, columns=4):
        self.write("candidate.py", FIRST_CALL.replace("AFTER", after).encode())
        inputs = [{"kind": wire.TENSOR, "dtype": 2, "shape": [3, columns]}, {"kind": wire.INT}]
        self.write("inputs.json", json.dumps(inputs).encode())
        said = []
        path = os.path.join(self.root, "said")
        child = os.fork()
        if child == 0:
            device.CPU = "none"
            device.name = lambda _settings: "cpu"
            device.start = lambda _settings: None
            device.move = lambda model, _number, _path: model
            torch.cuda.synchronize = lambda: None

            def say(message):
                with open(path, "a", encoding="utf-8") as file:
                    file.write(message)

            os._exit(build._build(self.root, {"threads": 1}, say))
        status = build._await(child, self.tar, said.append)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                said.append(file.read())
        return status, said

    def names(self):
        with tarfile.open(self.tar) as archive:
            return archive.getnames()

    def test_what_the_first_call_compiles_is_packed(self):
        self.assertEqual(self.build("return x"), (0, []))
        self.assertIn("triton/KEY4/kernel.cubin", self.names())

    def test_a_second_size_comes_on_top_of_the_first(self):
        self.build("return x")
        os.rename(self.tar, os.path.join(self.root, "candidate", "extensions.tar"))
        shutil.rmtree(os.path.join(self.root, "tmp", "extensions"))
        self.assertEqual(self.build("return x", columns=7), (0, []))
        for name in ("triton/KEY4/kernel.cubin", "triton/KEY7/kernel.cubin"):
            self.assertIn(name, self.names())

    def test_a_call_that_fails_leaves_what_it_compiled_and_a_message(self):
        status, said = self.build("raise ValueError('no')")
        self.assertEqual(status, 0)
        self.assertEqual(
            said, ["in the builder, its first call fails: candidate.py line 9: ValueError: no"]
        )
        self.assertIn("triton/KEY4/kernel.cubin", self.names())

    def test_a_call_that_ends_the_process_leaves_a_tar(self):
        status, said = self.build("os.kill(os.getpid(), 9)")
        self.assertEqual((status, said), (0, ["in the builder, its first call ends with signal 9"]))
        self.assertNotIn("triton/KEY4/kernel.cubin", self.names())


class Triton(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.makedirs(os.path.join(self.root, "tmp"))
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        extensions.prepare(self.root)

    def write_cache(self):
        self.assertTrue(os.environ["TRITON_CACHE_DIR"].startswith(extensions.folder(self.root)))
        folder = os.path.join(os.environ["TRITON_CACHE_DIR"], "KEY")
        os.makedirs(folder)
        for name in ("kernel.cubin", "cuda_utils.so", "__grp__kernel.json"):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(name)
        return folder

    def test_its_cache_goes_to_the_hosts(self):
        folder = self.write_cache()
        tar = os.path.join(self.root, "extensions.tar")
        extensions.pack(self.root, tar)
        self.assertEqual(os.listdir(self.root).count("extensions.tar.unfinished"), 0)
        with open(tar, "rb") as file:
            self.assertIn(b"triton/", file.read())  # what the judge looks for
        names = sorted(os.listdir(folder))
        os.rename(extensions.folder(self.root), os.path.join(self.root, "aside"))
        extensions.prepare(self.root)
        self.assertFalse(extensions.unpack(tar, self.root), "nothing of torch's loader is there")
        self.assertEqual(sorted(os.listdir(folder)), names)

    def write_triton(self):
        """Writes a package of that name that records its calls."""
        files = {
            "__init__": "",
            "backends/__init__": "",
            "backends/compiler": """
                import collections
                GPUTarget = collections.namedtuple("GPUTarget", "backend arch warp_size")
                """,
            "backends/nvidia/__init__": "",
            "backends/nvidia/driver": """
                from triton import asked
                def library_dirs(): asked.append("library_dirs")
                """,
            "compiler/__init__": "",
            "compiler/compiler": """
                from triton import asked
                class Backend:
                    def __init__(self, target): self.target = target
                    def hash(self): asked.append(tuple(self.target))
                make_backend = Backend
                """,
            "runtime/__init__": "",
            "runtime/build": """
                from triton import asked
                def platform_key(): asked.append("platform_key")
                """,
        }
        for name, text in files.items():
            path = os.path.join(self.root, "packages", "triton", name + ".py")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(textwrap.dedent(text))
        with open(
            os.path.join(self.root, "packages", "triton", "__init__.py"), "w", encoding="ascii"
        ) as file:
            file.write("asked = []\n")
        self.forget_triton()
        sys.path.insert(0, os.path.join(self.root, "packages"))
        self.addCleanup(sys.path.remove, os.path.join(self.root, "packages"))
        self.addCleanup(self.forget_triton)

    @staticmethod
    def forget_triton():
        for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
            del sys.modules[name]

    def test_code_of_inductor_has_pytorchs_assembler_from_the_start(self):
        # With Triton's own in the host and PyTorch's in the builder, no kernel was found in the
        # cache, and the host tried to start a compiler.
        packages = os.path.join(self.root, "packages")
        tool = os.path.join(packages, "torch", "bin", "ptxas")
        os.makedirs(os.path.dirname(tool))
        for path in (tool, os.path.join(packages, "torch", "__init__.py")):
            with open(path, "w", encoding="ascii"):
                pass
        os.chmod(tool, 0o755)
        origin = types.SimpleNamespace(origin=os.path.join(packages, "torch", "__init__.py"))
        candidate = os.path.join(self.root, "candidate.py")
        for text, expected in {
            "import triton": None,
            "from torch._inductor.async_compile import AsyncCompile": tool,
            "model = torch.compile(model)": tool,
        }.items():
            with open(candidate, "w", encoding="ascii") as file:
                file.write(text)
            with mock.patch.dict(os.environ), mock.patch.object(
                extensions.importlib.util, "find_spec", lambda _name: origin
            ):
                os.environ.pop("TRITON_PTXAS_PATH", None)
                extensions.prefer_ptxas_of_inductor(candidate)
                self.assertEqual(os.environ.get("TRITON_PTXAS_PATH"), expected, text)

    def test_its_tools_are_asked_where_there_is_a_cache(self):
        self.write_triton()
        extensions.ask_tools_for_triton(self.root, (9, 0))
        self.assertNotIn("triton", sys.modules, "a host without its cache does not import it")
        self.write_cache()
        extensions.ask_tools_for_triton(self.root, (9, 0))
        self.assertEqual(
            sys.modules["triton"].asked, [("cuda", 90, 32), "platform_key", "library_dirs"]
        )

    def test_its_errors_are_told_by_their_last_line(self):
        CompilationError = type("CompilationError", (Exception,), {})
        error = CompilationError(
            "at 6:13:\n    x = tl.f(y)\n        ^\nAttributeError(\"no attribute 'f'\")"
        )
        self.assertEqual(
            failure.describe_exception(error),
            "CompilationError: AttributeError(\"no attribute 'f'\") (at 6:13)",
        )

    def test_another_release_of_it_is_no_failure(self):
        self.write_triton()
        os.remove(os.path.join(self.root, "packages", "triton", "runtime", "build.py"))
        self.write_cache()
        extensions.ask_tools_for_triton(self.root, (10, 0))
        self.assertEqual(sys.modules["triton"].asked, [("cuda", 100, 32), "library_dirs"])


if __name__ == "__main__":
    unittest.main()
