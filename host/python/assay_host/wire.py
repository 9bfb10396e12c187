"""The wire's structs as ctypes, checked against the C++ at start-up, and the functions of
libassay_host.so.

src/wire/types.h is the definition; nothing here may differ from it, and check_layout() proves that
it does not.
"""

import ctypes
import os

MAGIC = 0x59415341
VERSION = 1
RANK_MAX = 8
ARGUMENTS_MAX = 2048
CALLS_MAX = 4096
RESULTS_MAX = 16384
NAME_BYTES = 120
MESSAGE_BYTES = 16 * 1024

# Role
INPUT, PARAMETER, OUTPUT = 1, 2, 3
# Kind
TENSOR, INT, FLOAT, BOOL = 1, 2, 3, 4
# Region
CONTROL, REPORT, PLAN, INPUTS, OUTPUTS, ORACLE, WEIGHTS, NUMBERS = 1, 2, 3, 4, 5, 6, 7, 8
TRACE, RESULTS = 11, 12
MAY_LIE_ON_DEVICE = (INPUTS, OUTPUTS, WEIGHTS, ORACLE, RESULTS)
# FrameKind
ATTACH, LOAD, STORE_WEIGHTS, DRAW, EVALUATE, BLOCKS, QUIT, ESTIMATE, PROFILE = range(1, 10)
MUTANTS, MUTATE, FILL, SELECT, START_DEVICE, CHECK, STATE = range(10, 17)
HELLO, DONE, FAILED = 100, 101, 102
# kUses: libraries that START_DEVICE starts
USES_PRODUCTS, USES_CONVOLUTIONS = 1, 2
# Results
INTO_SLOTS, KEPT, LEFT = 0, 1, 2
# Fault
FAULT_DEVICE = 2
# Receive
RECEIVED, CLOSED, TIMEOUT, MALFORMED = 0, 1, 2, 3

_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64
_DEVICE_TEXT_BYTES = 300


class Frame(ctypes.Structure):
    _fields_ = [("magic", _u32), ("kind", _u32), ("args", _u64 * 8)]


class ArgumentSpec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * NAME_BYTES),
        ("role", _u32),
        ("kind", _u32),
        ("dtype", _u32),
        ("rank", _u32),
        ("shape", ctypes.c_int64 * RANK_MAX),
        ("size_bytes", _u64),
        ("offset", _u64),
        ("oracle_offset", _u64),
        ("varies", _u64),
        ("twin", _u64),
        ("used_bytes", _u64),
    ]


class Plan(ctypes.Structure):
    _fields_ = [
        ("argument_count", _u32),
        ("slot_count", _u32),
        ("input_stride", _u64),
        ("output_stride", _u64),
        ("oracle_stride", _u64),
        ("weights_stride", _u64),
        ("arguments", ArgumentSpec * ARGUMENTS_MAX),
    ]


class Control(ctypes.Structure):
    _fields_ = [
        ("armed", _u32),
        ("spin", _u32),
        ("results", _u32),
        ("replay", _u32),
        ("profile", _u32),
        ("trace", _u32),
        ("inputs_of", _u32),
        ("padding", _u32 * 9),
        ("go", _u32),
        ("call_count", _u32),
        ("order", _u32 * CALLS_MAX),
        ("padding_end", _u32 * 14),
    ]


class Report(ctypes.Structure):
    _fields_ = [
        ("ready", _u32),
        ("padding_ready", _u32 * 15),
        ("done", _u32),
        ("settle_ns", _u64),
        ("replays", _u32),
        ("padding_done", _u32 * 11),
        ("fault", _u32),
        ("fault_signal", ctypes.c_int32),
        ("fault_region", _u32),
        ("fault_address", _u64),
        ("fault_call", _u32),
        ("argument_count", _u32),
        ("failure", _u64),
        ("message", ctypes.c_char * MESSAGE_BYTES),
        ("arguments", ArgumentSpec * ARGUMENTS_MAX),
        ("result_at", _u64 * RESULTS_MAX),
        ("padding_end", _u32 * 6),
    ]


class BlockLoop(ctypes.Structure):
    _fields_ = [
        ("control", ctypes.c_void_p),
        ("report", ctypes.c_void_p),
        ("sequence", _u32),
        ("call_count", _u32),
        ("order", ctypes.POINTER(_u32)),
    ]


def _sizes_and_offsets():
    fields = [
        (Frame, "kind args"),
        (
            ArgumentSpec,
            "role kind dtype rank shape size_bytes offset oracle_offset varies twin used_bytes",
        ),
        (Plan, "slot_count input_stride output_stride oracle_stride weights_stride arguments"),
        (Control, "armed spin results replay profile trace inputs_of go call_count order"),
        (
            Report,
            "ready done settle_ns replays fault fault_signal fault_region fault_address fault_call "
            "argument_count failure message arguments result_at",
        ),
        (BlockLoop, "control report sequence call_count order"),
    ]
    rows = []
    for struct, names in fields:
        rows.append((f"sizeof({struct.__name__})", ctypes.sizeof(struct)))
        rows += [
            (f"{struct.__name__}.{name}", getattr(struct, name).offset) for name in names.split()
        ]
    rows += [
        ("kMagic", MAGIC),
        ("kVersion", VERSION),
        ("kRankMax", RANK_MAX),
        ("kArgumentsMax", ARGUMENTS_MAX),
        ("kCallsMax", CALLS_MAX),
        ("kResultsMax", RESULTS_MAX),
        ("kNameBytes", NAME_BYTES),
        ("kMessageBytes", MESSAGE_BYTES),
    ]
    return rows


class Library:
    """libassay_host.so. Raises OSError when it cannot be loaded, RuntimeError when it disagrees
    with this file.
    """

    def __init__(self, path):
        waiting = ctypes.CDLL(path)
        # PyDLL keeps the interpreter's lock: taking it again would be inside the clock.
        holding = ctypes.PyDLL(path)
        self._check_layout(waiting)
        loop = ctypes.POINTER(BlockLoop)
        self.send = _function(waiting.AssaySend, ctypes.c_int, ctypes.c_int, ctypes.POINTER(Frame))
        self.receive = _function(
            waiting.AssayReceive,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.POINTER(Frame),
            ctypes.POINTER(ctypes.c_int),
        )
        self.map = _function(
            waiting.AssayMap,
            ctypes.c_void_p,
            ctypes.c_int,
            _u32,
            _u64,
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_int),
        )
        self._confine = _function(
            waiting.AssayConfine,
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_int,
        )
        self.unmap = _function(waiting.AssayUnmap, None, ctypes.c_void_p, _u64)
        self._map_device = _function(
            waiting.AssayMapDevice,
            ctypes.c_int,
            ctypes.c_int,
            _u64,
            ctypes.POINTER(_u64),
            ctypes.c_char_p,
            _u64,
        )
        self.unmap_device = _function(waiting.AssayUnmapDevice, None, _u64, _u64)
        # Without the interpreter's lock: a Python function that the device's work waits for would
        # wait for the lock without end.
        self.synchronize_device = _function(waiting.AssaySynchronizeDevice, ctypes.c_int)
        # Takes a cudaGraph_t, and readies it for launch_graph(); CUDA's result, as that is.
        self.instantiate_graph = _function(
            waiting.AssayInstantiateGraph, ctypes.c_int, ctypes.c_void_p
        )
        self.launch_graph = _function(holding.AssayLaunchGraph, ctypes.c_int)
        self.start_profiler = _function(waiting.AssayStartProfiler, ctypes.c_int)
        self.stop_profiler = _function(waiting.AssayStopProfiler, ctypes.c_int)
        # In the region TRACE: what kernels run between the two.
        self.start_trace = _function(waiting.AssayStartTrace, None)
        self.stop_trace = _function(waiting.AssayStopTrace, None)
        self._describe_device = _function(
            waiting.AssayDescribeDevice, None, ctypes.c_int, ctypes.c_char_p, _u64
        )
        self.prefault = _function(
            waiting.AssayPrefault,
            None,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        )
        self.serve_results = _function(
            waiting.AssayServeResults, None, _u64, ctypes.POINTER(_u64), _u64
        )
        self.serve_device_results = _function(
            waiting.AssayServeDeviceResults, None, _u64, _u64, ctypes.POINTER(_u64), _u64
        )
        self.await_armed = _function(waiting.AssayAwaitArmed, ctypes.c_int, loop)
        self.await_go = _function(holding.AssayAwaitGo, None, loop)
        self.say_done = _function(holding.AssaySayDone, None, loop, _u64)
        self.report_faults = _function(waiting.AssayReportFaults, ctypes.c_int, ctypes.c_void_p)
        self.lock_down = _function(waiting.AssayLockDown, ctypes.c_int, ctypes.c_int)

    def map_device(self, fd, size_bytes):
        """Maps device memory of the judge's and returns its address. Raises OSError with CUDA's
        words.
        """
        address = _u64()
        message = ctypes.create_string_buffer(_DEVICE_TEXT_BYTES)
        result = self._map_device(
            fd, size_bytes, ctypes.byref(address), message, _DEVICE_TEXT_BYTES
        )
        if result:
            raise OSError(result, message.value.decode("utf-8", "replace"))
        return address.value

    def describe_device(self, result):
        """Returns CUDA's words for a result of synchronize_device()."""
        text = ctypes.create_string_buffer(_DEVICE_TEXT_BYTES)
        self._describe_device(result, text, _DEVICE_TEXT_BYTES)
        return text.value.decode("utf-8", "replace")

    def confine(self, devices, filters):
        """Gives up all privileges; see AssayConfine. Returns 0 or errno."""
        nodes = (ctypes.c_char_p * (len(devices) + 1))(*(os.fsencode(d) for d in devices), None)
        return self._confine(nodes, (ctypes.c_int * len(filters))(*filters), len(filters))

    @staticmethod
    def _check_layout(library):
        layout = _function(library.AssayLayout, ctypes.POINTER(_u64), ctypes.POINTER(_u32))
        count = _u32()
        values = layout(ctypes.byref(count))
        rows = _sizes_and_offsets()
        if count.value != len(rows):
            raise RuntimeError(
                f"libassay_host.so lists {count.value} layout values, wire.py {len(rows)}"
            )
        for (name, value), other in zip(rows, values[: count.value]):
            if value != other:
                raise RuntimeError(f"{name} is {other} in libassay_host.so but {value} in wire.py")


def _function(function, result, *arguments):
    function.restype = result
    function.argtypes = arguments
    return function


def library_path():
    """Returns the path beside the folder python/, both as installed and as bound into a sandbox."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(folder, "libassay_host.so")


class Mapping:
    """One attached region: an address range that stays valid until close()."""

    on_device = False

    def __init__(self, library, fd, number, size_bytes, writable):
        error = ctypes.c_int()
        self.address = library.map(
            fd, number, size_bytes, 1 if writable else 0, ctypes.byref(error)
        )
        if not self.address:
            raise OSError(error.value, os.strerror(error.value))
        self.size_bytes = size_bytes
        self.writable = writable
        self._library = library
        # A buffer for torch.frombuffer. ctypes believes it writable; where the pages are not, a
        # write is a fault.
        self.buffer = (ctypes.c_char * size_bytes).from_address(self.address)

    def as_struct(self, struct):
        if self.size_bytes < ctypes.sizeof(struct):
            raise ValueError(
                f"region of {self.size_bytes} bytes is too small for {struct.__name__}"
            )
        return struct.from_address(self.address)

    def close(self):
        self._library.unmap(self.address, self.size_bytes)


class DeviceMapping:
    """One attached region of device memory, until close(). A device has no read-only mapping, so
    nothing keeps a host from writing to it; the judge checks for changes.
    """

    on_device = True
    room = None  # of results that lie in it (device_results.py)

    def __init__(self, library, fd, size_bytes):
        self.address = library.map_device(fd, size_bytes)
        self.size_bytes = size_bytes
        self._library = library

    def part(self, offset, size_bytes):
        """Returns a tensor of bytes over a part of the region, with a storage of its own, as on the
        CPU: torch.compile treats slices of one storage, at offsets that differ from slot to slot,
        as tensors of different kinds.
        """
        import torch

        if size_bytes == 0:
            return torch.empty(0, dtype=torch.uint8, device="cuda")
        return torch.as_tensor(_DeviceBytes(self.address + offset, size_bytes), device="cuda")

    def close(self):
        self._library.unmap_device(self.address, self.size_bytes)


class _DeviceBytes:
    """An object that torch turns into a tensor without a copy."""

    def __init__(self, address, size_bytes):
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def encode_text(text, size_bytes):
    """Returns UTF-8 of at most size_bytes - 1 bytes, cut between characters, so that a NUL fits."""
    data = text.replace("\0", " ").encode("utf-8", "replace")
    return data[: size_bytes - 1].decode("utf-8", "ignore").encode("utf-8")


def write_text(fd, text):
    """Writes to a request's descriptor. Returns the bytes written, 0 without a descriptor."""
    if fd < 0:
        return 0
    data = text.encode()
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    return len(data)
