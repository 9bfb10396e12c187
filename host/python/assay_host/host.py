"""The host process: answers the judge's frames until it quits or hangs up (docs/protocol.md).

Every request is answered by one frame: kDone with the request's results, or kFailed with a Failure
and a text in Report::message. Nothing here imports torch before the greeting, so that a missing
PyTorch is reported like any failure.
"""

import ctypes
import gc
import io
import json
import os
import random
import signal
import sys
import traceback

from assay_host import failure, wire
from assay_host.failure import Failure

SOCKET = 3
LOCKDOWN = 4
HELLO_ROLES = {"reference": 1, "candidate": 2, "opponent": 3}
EXIT_BUG = 70
_PADDING_MAX = 64 * 1024


class Context:
    """The parts of the process that a role needs: the library, the attached regions, the settings,
    the report.
    """

    def __init__(self, library, root):
        self.library = library
        self.root = root
        self.regions = {}
        self.on_attach = []
        self.loop = wire.BlockLoop()
        self._device_started = False
        self._padding = random_padding()

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    @property
    def settings(self):
        """Reads the settings file anew: a host that stays up serves the next problem, too."""
        return read_settings(self.path("problem", "settings.json"))

    @property
    def report(self):
        return self.region(wire.REPORT).as_struct(wire.Report)

    @property
    def plan(self):
        return self.region(wire.PLAN).as_struct(wire.Plan)

    def start_device(self, libraries=0):
        """Starts the settings' device, and the vendor's libraries (wire.USES_PRODUCTS...), once.
        Not before the judge asks for something, since PyTorch's import may run beside another
        judge's measurement. Raises Failure(kEnvironment).
        """
        if not self._device_started:
            from assay_host import device

            device.start(self.settings, libraries)
            self._device_started = True

    def region(self, number):
        if number not in self.regions:
            raise Failure(failure.ENVIRONMENT, f"region {number} is not attached")
        return self.regions[number]

    def say(self, text, number=0):
        """Writes the text into the report, with the number of its failure."""
        if wire.REPORT in self.regions:
            self.report.message = wire.encode_text(text, wire.MESSAGE_BYTES)
            self.report.failure = number

    def attach(self, args, fd):
        number, size_bytes, writable, on_device = args[0], args[1], args[2] != 0, args[3] == 1
        if fd < 0:
            raise Failure(failure.ENVIRONMENT, "an attach frame came without a descriptor")
        if on_device and number not in wire.MAY_LIE_ON_DEVICE:
            raise Failure(failure.ENVIRONMENT, f"region {number} is no device memory")
        try:
            if on_device:
                mapping = wire.DeviceMapping(self.library, fd, size_bytes)
            else:
                mapping = wire.Mapping(self.library, fd, number, size_bytes, writable)
        except OSError as error:
            raise Failure(
                failure.ENVIRONMENT, f"cannot map region {number}: {error.strerror}"
            ) from error
        old = self.regions.get(number)
        self.regions[number] = mapping
        for callback in self.on_attach:
            callback(number)
        if old is not None:
            old.close()
        if number in (wire.CONTROL, wire.REPORT):
            # Sequence numbers start again with new regions, and only with them.
            self.loop = wire.BlockLoop()
            if wire.CONTROL in self.regions and wire.REPORT in self.regions:
                self.regions[wire.CONTROL].as_struct(wire.Control)  # large enough
                self.loop.control = self.regions[wire.CONTROL].address
                self.loop.report = ctypes.addressof(self.report)
        return (mapping.address,) if number == wire.RESULTS else ()


class _Log(io.FileIO):
    """stdout or stderr, which nobody reads while a block runs: drops what does not fit the pipe,
    where print() would fail.
    """

    def write(self, data):
        written = super().write(data)
        return len(data) if written is None else written


def _log_to(descriptor):
    return io.TextIOWrapper(
        _Log(descriptor, "w", closefd=False),
        encoding="utf-8",
        errors="backslashreplace",
        write_through=True,
    )


def read_settings(path):
    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
        return settings if isinstance(settings, dict) else {}
    except FileNotFoundError:
        return {}


def random_padding():
    """Returns bytes that shift all later allocations of this process against its pages, differently
    in each host. Without them every host of a role has the same layout, whose effect (two buffers 4
    KiB apart, for example) looks like a difference between the roles.
    """
    return bytearray(random.SystemRandom().randrange(1, _PADDING_MAX))


def set_threads(torch, settings):
    torch.set_num_threads(max(1, int(settings.get("threads", 1))))
    try:
        torch.set_num_interop_threads(1)
    except RuntimeError:
        pass  # set already: only once a process


def _make_role(role, context):
    """Returns the role's request handlers by frame kind. Raises Failure if PyTorch is missing.
    Imported objects stay to the end: the garbage collector visits them neither during the import
    nor later, until blocks are left.
    """
    gc.disable()
    try:
        return _imported_role(role, context)
    finally:
        gc.freeze()
        gc.enable()


def _imported_role(role, context):
    try:
        import torch
    except BaseException as error:
        raise Failure(
            failure.ENVIRONMENT,
            f"PyTorch cannot be imported by {sys.executable}: "
            f"{failure.describe_exception(error)}",
        ) from error
    set_threads(torch, context.settings)
    torch.set_grad_enabled(False)
    if role == "reference":
        from assay_host.reference import Reference

        return Reference(context).handlers()
    from assay_host import candidate

    part = candidate.OPPONENT if role == "opponent" else candidate.CANDIDATE
    return candidate.Candidate(context, LOCKDOWN, part).handlers()


def _answer(handlers, context, frame, fd):
    """Runs one request; returns the reply."""
    reply = wire.Frame(magic=wire.MAGIC, kind=wire.DONE)
    try:
        works = not isinstance(handlers, _Unavailable)
        greets = frame.kind == wire.ATTACH and frame.args[0] in (wire.CONTROL, wire.REPORT)
        if works and not greets and frame.kind != wire.ESTIMATE:
            context.start_device(frame.args[0] if frame.kind == wire.START_DEVICE else 0)
        if greets or (works and frame.kind == wire.ATTACH):
            handler = context.attach
        elif works and frame.kind == wire.START_DEVICE:
            handler = _nothing_more
        elif frame.kind in handlers:
            handler = handlers[frame.kind]
        else:
            raise Failure(
                failure.ENVIRONMENT, f"this host does not answer frames of kind {frame.kind}"
            )
        results = handler(list(frame.args), fd)
        reply.args[: len(results)] = results
        return reply
    except Failure as error:
        number, text = error.number, error.message
    except MemoryError:
        number, text = failure.ENVIRONMENT, "the python host ran out of memory"
    except Exception as error:
        traceback.print_exc()
        number, text = failure.ENVIRONMENT, "the python host failed: " + failure.describe_exception(
            error
        )
    context.say(text, number)
    reply.kind = wire.FAILED
    reply.args[0] = number
    return reply


def _nothing_more(_args, _fd):
    return ()


class _Unavailable(dict):
    """Handlers of a host without PyTorch: every request fails with the reason, as the report exists
    by then. The judge learns it before a candidate is loaded, while the host is still trusted.
    """

    def __init__(self, error):
        super().__init__()
        self._error = error

    def __contains__(self, kind):
        return True

    def __missing__(self, kind):
        def fail(_args, _fd):
            raise Failure(self._error.number, self._error.message)

        return fail


def main(role, library=None):
    try:
        library = library or wire.Library(wire.library_path())
    except (OSError, RuntimeError) as error:
        print(f"assay: the python host cannot use its library: {error}", file=sys.stderr)
        sys.exit(EXIT_BUG)
    # Ctrl-C reaches the whole process group; the judge alone decides when a host ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout, sys.stderr = _log_to(1), _log_to(2)
    context = Context(library, os.environ.get("ASSAY_HOST_ROOT", "/"))
    hello = wire.Frame(magic=wire.MAGIC, kind=wire.HELLO)
    hello.args[:2] = [wire.VERSION, HELLO_ROLES[role]]
    if not library.send(SOCKET, ctypes.byref(hello)):
        _leave(1)
    try:
        handlers = _make_role(role, context)
    except Failure as error:
        handlers = _Unavailable(error)
    frame = wire.Frame()
    while True:
        fd = ctypes.c_int(-1)
        received = library.receive(SOCKET, ctypes.byref(frame), ctypes.byref(fd))
        if received != wire.RECEIVED:
            _leave(0 if received == wire.CLOSED else 1)
        if frame.kind == wire.QUIT:
            if context.loop.control and wire.Control.from_address(context.loop.control).profile:
                sys.exit(0)  # what a profiler left for the end of the process is done
            _leave(0)
        reply = _answer(handlers, context, frame, fd.value)
        if fd.value >= 0:
            os.close(fd.value)
        if not library.send(SOCKET, ctypes.byref(reply)):
            _leave(1)


def _leave(status):
    # Destructors of PyTorch and of a candidate could take seconds, or hang.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
