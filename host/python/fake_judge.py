"""Plays the judge against a real python host process, for the tests: sockets, regions, slots and
blocks.

The host runs as a plain child under a temporary root, without a sandbox. One host serves many
problems: each load reads the problem file again.
"""

import ctypes
import fcntl
import json
import mmap
import os
import platform
import shutil
import signal
import socket
import sys
import tempfile
import time

SUPPORT = os.environ["ASSAY_SUPPORT"]
sys.path.insert(0, os.path.join(SUPPORT, "python"))

import torch  # noqa: E402

from assay_host import failure, values, wire  # noqa: E402,F401

WAIT_SECONDS_MAX = 60
LEAVE_BLOCKS = 0xFFFFFFFF
POISON = 0xFF
_FUTEX = {"x86_64": 202, "aarch64": 98}[platform.machine()]
_FUTEX_WAKE = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Refused(AssertionError):
    """A request that was answered by kFailed, where the test expected kDone."""


class Region:
    """One memfd that the judge maps writable."""

    on_device = False

    def __init__(self, size_bytes):
        self.fd = os.memfd_create("assay-test")
        os.ftruncate(self.fd, size_bytes)
        self.map = mmap.mmap(self.fd, size_bytes)
        self.buffer = (ctypes.c_char * size_bytes).from_buffer(self.map)
        self.size_bytes = size_bytes
        self.address = ctypes.addressof(self.buffer)

    def as_struct(self, struct):
        return struct.from_buffer(self.map)


def align(value, alignment):
    return -(-value // alignment) * alignment


class Judge:
    def __init__(self, role="reference", settings=None, lockdown=b"", root=None, options=()):
        self.root = root or tempfile.mkdtemp(prefix="assay-test-")
        self._own_root = root is None
        self.settings = {"threads": 1, "seed": 7, "weights_seed": 11}
        self.settings.update(settings or {})
        for folder in ("problem", "candidate", "tmp"):
            os.makedirs(os.path.join(self.root, folder), exist_ok=True)
        self.write("problem/settings.json", json.dumps(self.settings))
        self.regions = {}
        self.sequence = 0
        self._start(role, lockdown, options)

    def write(self, path, content):
        with open(os.path.join(self.root, path), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())

    def _start(self, role, lockdown, options):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = os.memfd_create("assay-lockdown")
        os.write(program, lockdown)
        high_socket = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 20)
        high_program = fcntl.fcntl(program, fcntl.F_DUPFD_CLOEXEC, 20)
        self.log_path = os.path.join(self.root, "tmp", "log")
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/tmp",
            "ASSAY_HOST_ROOT": self.root,
            "OMP_NUM_THREADS": "1",
            "LD_PRELOAD": os.path.join(SUPPORT, "libassay_host.so"),
        }
        # Some machines have their CUDA driver nowhere else; and hosts use the GPU that this process
        # uses, where there are several.
        for name in ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"):
            if name in os.environ:
                environment[name] = os.environ[name]
        self.pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-B", "-s", *options]
            + (["-P"] if sys.version_info >= (3, 11) else [])
            + [os.path.join(SUPPORT, "python", "assay_host"), role],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, high_socket, 3),
                (os.POSIX_SPAWN_DUP2, high_program, 4),
                (
                    os.POSIX_SPAWN_OPEN,
                    1,
                    self.log_path,
                    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                    0o600,
                ),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        for fd in (high_socket, high_program, program):
            os.close(fd)
        theirs.close()
        self.socket = ours
        self.socket.settimeout(WAIT_SECONDS_MAX)
        self.status = None
        kind, self.hello = self._receive()
        assert kind == wire.HELLO and self.hello[0] == wire.VERSION, self.log()
        self.attach(wire.CONTROL, ctypes.sizeof(wire.Control), False)
        self.attach(wire.REPORT, ctypes.sizeof(wire.Report), True)
        self.control = self.regions[wire.CONTROL].as_struct(wire.Control)
        self.report = self.regions[wire.REPORT].as_struct(wire.Report)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def close(self):
        self.socket.close()
        if self.status is None:
            self.wait()
        if self._own_root:
            shutil.rmtree(self.root)

    def wait(self):
        """Returns the host's wait status. The host ends by itself once the socket is closed, or is
        killed at the bound.
        """
        pidfd = os.pidfd_open(self.pid)
        import select

        if not select.select([pidfd], [], [], 20)[0]:
            os.kill(self.pid, signal.SIGKILL)
        os.close(pidfd)
        self.status = os.waitpid(self.pid, 0)[1]
        return self.status

    # Frames

    def _receive(self):
        data = self.socket.recv(1000)
        if len(data) != ctypes.sizeof(wire.Frame):
            raise ConnectionError(f"the host is gone: {self.log()}")
        frame = wire.Frame.from_buffer_copy(data)
        assert frame.magic == wire.MAGIC
        return frame.kind, list(frame.args)

    def post(self, kind, *args, fd=None):
        frame = wire.Frame(magic=wire.MAGIC, kind=kind)
        frame.args[: len(args)] = args
        rights = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))]
            if fd is not None
            else []
        )
        self.socket.sendmsg([bytes(frame)], rights)

    def request(self, kind, *args, fd=None):
        """Returns the arguments of kDone; raises Refused with .number for kFailed."""
        self.post(kind, *args, fd=fd)
        answer, results = self._receive()
        if answer == wire.FAILED:
            error = Refused(f"failure {results[0]}: {self.message()}\n{self.log()}")
            error.number = results[0]
            raise error
        assert answer == wire.DONE
        return results

    def message(self):
        return self.report.message.decode()

    def attach(self, number, size_bytes, writable):
        region = Region(size_bytes)
        self.regions[number] = region
        self.request(wire.ATTACH, number, size_bytes, 1 if writable else 0, fd=region.fd)
        return region

    # Problems

    def load(self, source, settings=None, brief=False, whole_bytes=0):
        """Loads a problem; returns kDone's arguments. Afterwards self.specs and self.record are its
        description.
        """
        self.write("problem/problem.py", source)
        self.write("problem/settings.json", json.dumps(dict(self.settings, **(settings or {}))))
        memory = os.memfd_create("assay-init")
        try:
            done = self.request(wire.LOAD, 1 if brief else 0, 0, whole_bytes, fd=memory)
            self.record = os.pread(memory, done[3], 0)
            self.behind_record = os.pread(memory, 1 << 16, done[3])
        finally:
            os.close(memory)
        assert done[0] == self.report.argument_count
        self.specs = [
            wire.ArgumentSpec.from_buffer_copy(self.report.arguments[i]) for i in range(done[0])
        ]
        return done

    def signature(self):
        """Returns rows such as 'input x float32[4, 8]'."""
        roles = {wire.INPUT: "input", wire.PARAMETER: "parameter", wire.OUTPUT: "output"}
        kinds = {wire.INT: "int", wire.FLOAT: "float", wire.BOOL: "bool"}
        rows = []
        for spec in self.specs:
            if spec.kind == wire.TENSOR:
                dtype = str(values.DTYPES[spec.dtype]).replace("torch.", "")
                text = f"{dtype}[{', '.join(map(str, spec.shape[:spec.rank]))}]"
            else:
                text = kinds[spec.kind]
            rows.append(f"{roles[spec.role]} {spec.name.decode()} {text}")
        return rows

    def varying(self):
        """Returns the names of the parameters that a judge may change between calls."""
        return [spec.name.decode() for spec in self.specs if spec.varies]

    def lay_out(self, slot_count, specs=None, weights=None, inputs_writable=True, inputs=None):
        """Chooses offsets, attaches plan, inputs, outputs, oracle and weights."""
        plan_region = Region(ctypes.sizeof(wire.Plan))
        plan = plan_region.as_struct(wire.Plan)
        ends = {wire.INPUT: 64, wire.PARAMETER: 64, wire.OUTPUT: 64}
        oracle_end = 64
        self.specs = specs or self.specs
        for index, spec in enumerate(self.specs):
            spec.offset = ends[spec.role]
            ends[spec.role] = align(spec.offset + spec.size_bytes, 64) + 64
            if spec.role == wire.OUTPUT:
                spec.oracle_offset = oracle_end
                count = (
                    spec.size_bytes
                    // torch.empty((), dtype=values.DTYPES[spec.dtype]).element_size()
                )
                oracle_end = align(oracle_end + 8 * count, 64) + 64
            plan.arguments[index] = spec
        plan.argument_count, plan.slot_count = len(self.specs), slot_count
        plan.input_stride, plan.output_stride = ends[wire.INPUT], ends[wire.OUTPUT]
        plan.oracle_stride, plan.weights_stride = oracle_end, ends[wire.PARAMETER]
        self.plan = plan
        self.regions[wire.PLAN] = plan_region
        self.request(wire.ATTACH, wire.PLAN, plan_region.size_bytes, 0, fd=plan_region.fd)
        self._attach_shared(
            wire.INPUTS, inputs or Region(slot_count * plan.input_stride), inputs_writable
        )
        self.attach(wire.OUTPUTS, slot_count * plan.output_stride, True)
        ctypes.memset(self.regions[wire.OUTPUTS].address, POISON, slot_count * plan.output_stride)
        self.attach(wire.ORACLE, slot_count * plan.oracle_stride, True)
        region = weights or Region(slot_count * plan.weights_stride)
        self._attach_shared(wire.WEIGHTS, region, weights is None)

    def store_weights(self):
        """Has an oracle store its weights, and copies them into each slot."""
        self.request(wire.STORE_WEIGHTS, 0)
        first, stride = self.regions[wire.WEIGHTS].address, self.plan.weights_stride
        for slot in range(1, self.plan.slot_count):
            ctypes.memmove(first + slot * stride, first, stride)

    def _attach_shared(self, number, region, writable):
        self.regions[number] = region
        self.request(wire.ATTACH, number, region.size_bytes, 1 if writable else 0, fd=region.fd)

    def spec(self, name):
        return next(spec for spec in self.specs if spec.name.decode() == name)

    def tensor(self, name, slot=0):
        """Returns a view of an input's, output's or parameter's bytes in the judge's memory."""
        spec = self.spec(name)
        number, stride = {
            wire.INPUT: (wire.INPUTS, self.plan.input_stride),
            wire.OUTPUT: (wire.OUTPUTS, self.plan.output_stride),
            wire.PARAMETER: (wire.WEIGHTS, self.plan.weights_stride),
        }[spec.role]
        return values.spec_view(self.regions[number], spec, slot * stride + spec.offset)

    def scalar(self, name, slot=0):
        spec = self.spec(name)
        return values.read_scalar(
            self.regions[wire.INPUTS], spec.kind, slot * self.plan.input_stride + spec.offset
        )

    def oracle(self, name, slot=0):
        spec = self.spec(name)
        return values.view(
            self.regions[wire.ORACLE],
            torch.float64,
            tuple(spec.shape[: spec.rank]),
            slot * self.plan.oracle_stride + spec.oracle_offset,
        )

    def draw(self, seed, kind=0, slot=0, nudge=0, bits=0):
        return self.request(wire.DRAW, seed, kind, slot, nudge, bits)[0]

    def evaluate(self, slot=0, precision=0):
        self.request(wire.EVALUATE, slot, precision)

    def fill(self, seed, first, count):
        self.request(wire.FILL, seed, first, count)

    # Blocks

    def enter_blocks(self, spin=False):
        self.control.spin = 1 if spin else 0
        self.control.call_count = 0
        self.post(wire.BLOCKS)

    def _ring(self, field, value):
        setattr(self.control, field, value)
        address = self.regions[wire.CONTROL].address + getattr(wire.Control, field).offset
        _libc.syscall(_FUTEX, ctypes.c_void_p(address), _FUTEX_WAKE, 2**31 - 1, None, None, 0)

    def _await(self, field, value):
        end = time.monotonic() + WAIT_SECONDS_MAX
        while getattr(self.report, field) != value:
            os.sched_yield()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                raise ConnectionError(f"the host died with status {status}: {self.log()}")
            assert time.monotonic() < end, f"the host does not answer: {self.log()}"

    def arm(self, order_ahead=()):
        self.sequence += 1
        self.control.order[: len(order_ahead)] = order_ahead
        self.control.call_count = len(order_ahead)
        self._ring("armed", self.sequence)
        self._await("ready", self.sequence)

    def run_block(self, order, replay=False):
        """Runs one block and returns its settle time [ns]. `replay`: tells the host the order
        before it is armed, and asks it to run the block as a graph.
        """
        self.control.replay = int(replay)
        self.arm(order if replay else ())
        return self.go(order)

    def go(self, order):
        self.control.order[: len(order)] = order
        self.control.call_count = len(order)
        self._ring("go", self.sequence)
        self._await("done", self.sequence)
        return self.report.settle_ns

    def leave_blocks(self):
        """Returns kDone's arguments."""
        self.sequence += 1
        self.control.call_count = LEAVE_BLOCKS
        self._ring("armed", self.sequence)
        kind, results = self._receive()
        assert kind == wire.DONE, self.message()
        return results
