"""A nursery: a process that has imported PyTorch, and forks Python hosts into sandboxes.

    python3 -B -s .../assay_host/nursery.py CONTROL ROLE JUDGE

Theory of operation. The judge starts it as a process of its own, outside of any sandbox, and hands
it one end of a socket for each host to come, on the control socket. At the other end, in a sandbox
that is whole, `graft` (host/graft/graft.cc) sends the descriptors, the arguments and the
environment of the host. The nursery forks a middle process. That takes on graft's control groups,
processors, limits, user and namespaces, and forks the host, which is then in the sandbox's process
namespace like any other. The host confines itself as confine does, and is as one that was executed
there. The middle process waits for its end, and tells graft.

The nursery itself runs no code of a problem or a candidate, has one thread, never starts CUDA, and
closes all that it was sent once a host has it. It ends with the control socket, once the hosts that
it was told of have come; and with the judge, whose process is JUDGE, at once. A host that was told
of may never come then: the judge can be killed while its sandbox is made. The nursery has the
judge's stderr, on which a reader waits for its end.
"""

import array
import contextlib
import ctypes
import importlib
import os
import resource
import select
import signal
import socket
import struct
import sys

_LOOK_S = 0.5  # how often the judge is looked for, where no socket tells of its end


def _end_with_judge(*_):
    if os.getppid() != int(sys.argv[3]):
        os._exit(0)


if __name__ == "__main__":
    # Imports take seconds, more on a busy machine.
    signal.signal(signal.SIGALRM, _end_with_judge)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)

_FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(_FOLDER)] + [
    path for path in sys.path if os.path.abspath(path or ".") != _FOLDER
]

# PyTorch and all that a host's role imports.
import torch  # noqa: E402, F401

from assay_host import candidate, device, extensions  # noqa: E402, F401
from assay_host import host, problem, reference, wire  # noqa: E402, F401

# Imports that estimating a problem needs besides: a second and more in newer releases of PyTorch.
# Only hosts that are not under test do so.
_MODULES = {"oracle": ("torch._subclasses.fake_tensor", "torch.utils._python_dispatch")}
_MESSAGE_MAX = 128 * 1024
_DESCRIPTORS_MAX = 16
_HIGH = 200  # above all descriptors that are passed on
_INSIDE = "/assay/python"
# As /proc/PID/limits has them.
_LIMITS = {
    "Max cpu time": resource.RLIMIT_CPU,
    "Max file size": resource.RLIMIT_FSIZE,
    "Max data size": resource.RLIMIT_DATA,
    "Max stack size": resource.RLIMIT_STACK,
    "Max core file size": resource.RLIMIT_CORE,
    "Max processes": resource.RLIMIT_NPROC,
    "Max open files": resource.RLIMIT_NOFILE,
    "Max address space": resource.RLIMIT_AS,
    "Max msgqueue size": resource.RLIMIT_MSGQUEUE,
    "Max nice priority": resource.RLIMIT_NICE,
    "Max realtime priority": resource.RLIMIT_RTPRIO,
}
# User, mounts, process ids, network, IPC, host name, control groups.
_NAMESPACES = 0x10000000 | 0x20000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x02000000
_SYS_PIDFD_OPEN = 434
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


class _Asked:
    """A host that graft asks for."""

    def __init__(self, connection):
        self.connection = connection
        self.pid = 0
        self.descriptors = []
        self.devices, self.arguments, self.environment = [], [], {}
        self.passed, self.filters = [], []  # (descriptor, number inside), and descriptors

    def read(self):
        """Receives graft's message. Raises OSError, ValueError."""
        space = socket.CMSG_SPACE(4 * _DESCRIPTORS_MAX) + socket.CMSG_SPACE(12)
        data, ancillary, _, _ = self.connection.recvmsg(
            _MESSAGE_MAX, space, socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % 4])
                self.descriptors = list(numbers)
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.pid, self.uid, self.gid = struct.unpack("3i", content[:12])
        if not data or self.pid <= 0 or len(self.descriptors) < 2:
            raise ValueError("no message of graft's")
        left = iter(self.descriptors)
        self.passed = [(next(left), 1), (next(left), 2)]
        for line in data.decode("utf-8", "surrogateescape").split("\0"):
            kind, _, text = line.partition(" ")
            if kind == "pass":
                self.passed.append((next(left), int(text)))
            elif kind == "filter":
                self.filters.append(next(left))
            elif kind == "device":
                self.devices.append(text)
            elif kind == "argument":
                self.arguments.append(text)
            elif kind == "variable":
                name, _, value = text.partition("=")
                self.environment[name] = value

    def say(self, number):
        try:
            self.connection.send(struct.pack("i", number))
        except OSError:
            pass


def _groups_of(pid):
    """Returns the control groups of a process: {"controllers": "/path"}."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":", 2)[1:] for line in file)


def _enter_groups(pid):
    own = _groups_of("self")
    for controllers, path in _groups_of(pid).items():
        if own.get(controllers) == path:
            continue
        folder = f"/sys/fs/cgroup/{controllers.removeprefix('name=')}".rstrip("/")
        with open(f"{folder}{path}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write("0")


def _limits_of(pid):
    """Returns the limits of a process: (number, (soft, hard))."""
    limits = []
    with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
        for line in file:
            number = _LIMITS.get(line[:26].strip())
            if number is None:
                continue
            pair = [
                resource.RLIM_INFINITY if word == "unlimited" else int(word)
                for word in line[26:].split()[:2]
            ]
            limits.append((number, tuple(pair)))
    return limits


def _join(asked):
    """Takes on what graft's process is, but for its own limits, which it returns."""
    pidfd = _check(_libc.syscall(_SYS_PIDFD_OPEN, asked.pid, 0), "pidfd_open")
    limits = _limits_of(asked.pid)
    with open(f"/proc/{asked.pid}/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    user, group = int(status["Uid"].split()[0]), int(status["Gid"].split()[0])
    os.sched_setaffinity(0, os.sched_getaffinity(asked.pid))
    _enter_groups(asked.pid)
    with open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
        file.write("500")
    if os.geteuid() != user:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    _check(_libc.setns(pidfd, _NAMESPACES), "setns")
    os.close(pidfd)
    return limits


def _become_host(asked, limits, library):
    """In the sandbox's process namespace: never returns."""
    os.setsid()
    os.chdir("/tmp")
    filters = [os.dup2(number, _HIGH + i) for i, number in enumerate(asked.filters)]
    passed = [
        (os.dup2(number, _HIGH + len(filters) + i), place)
        for i, (number, place) in enumerate(asked.passed)
    ]
    os.closerange(0, _HIGH)
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
    for number, place in passed:
        os.dup2(number, place)
    for number, pair in limits:
        resource.setrlimit(number, pair)
    if library.confine(asked.devices, filters):
        os._exit(126)
    os.closerange(_HIGH, _HIGH + _DESCRIPTORS_MAX)
    if not asked.arguments[-2:-1] or not asked.arguments[-2].endswith("assay_host/__main__.py"):
        os.execve(asked.arguments[0], asked.arguments, asked.environment)
    os.environ.clear()
    os.environ.update(asked.environment)
    sys.argv = asked.arguments[3:]
    sys.pycache_prefix = asked.environment.get("PYTHONPYCACHEPREFIX")
    sys.path[0] = _INSIDE
    sys.modules["assay_host"].__path__[:] = [f"{_INSIDE}/assay_host"]
    if asked.arguments[-1] == "build":
        os._exit(_build())
    host.main(asked.arguments[-1], library)
    os._exit(0)


def _build():
    """Builds, in the host's place. Returns the exit status."""
    from assay_host import build

    # It looks for the toolkit once, as it is imported.
    loader = sys.modules.get("torch.utils.cpp_extension")
    if loader is not None:
        loader.CUDA_HOME = os.environ.get("CUDA_HOME")
    return build.main()


def _graft(asked, library, others):
    """The middle process: never returns."""
    for number in others:
        os.close(number)
    try:
        limits = _join(asked)
        reader, writer = os.pipe()
        child = os.fork()
    except Exception as error:
        if os.path.exists(f"/proc/{asked.pid}"):  # else its sandbox was ended meanwhile
            print(f"assay: hosts are executed, not forked: {error}", file=sys.stderr)
        asked.say(1)
        os._exit(1)
    if child == 0:
        os.close(reader)
        asked.connection.close()
        try:
            _become_host(asked, limits, library)
        finally:
            os._exit(70)
    os.close(writer)
    for number in asked.descriptors:
        os.close(number)
    os.read(reader, 1)  # it is confined, or has ended
    asked.say(0)
    _, status = os.waitpid(child, 0)
    asked.say(status)
    os._exit(0)


def main():
    for module in _MODULES.get(sys.argv[2], ()):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    library = wire.Library(wire.library_path())
    waiting = {}
    sources = [control]
    while sources or waiting:
        ready, _, _ = select.select([*sources, *waiting], [], [], None if sources else _LOOK_S)
        if not sources:
            _end_with_judge()
        for one in ready:
            if one is control:
                _, numbers, _, _ = socket.recv_fds(control, 16, 1)
                if not numbers:
                    sources.clear()  # those that are waited for still come
                    continue
                connection = socket.socket(fileno=numbers[0])
                waiting[connection] = _Asked(connection)
                continue
            asked = waiting.pop(one)
            try:
                asked.read()
            except (OSError, ValueError, StopIteration):
                one.close()
                continue
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _graft(asked, library, [control.fileno(), *(each.fileno() for each in waiting)])
            for number in asked.descriptors:
                os.close(number)
            one.close()


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing of PyTorch's has to be taken down
