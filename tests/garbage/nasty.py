"""Candidates that do what no kernel would: fragments of C++ and Python with random arguments.

Every fragment is meant to confuse a judge: to crash it, to make it wait, to leave something behind,
or to end a whole call without a verdict. Each gets `random`, the seeded source of its arguments.
"""

MAGIC = 0x59415341  # a frame's first word (src/wire/types.h)

CPP_HEAD = """#include <assay/kernel.h>
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {
uint64_t state = SEEDull;
uint64_t next() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
struct Range { char *begin, *end; char rights[8]; bool shared; };
Range ranges[512];
int range_count() {
  FILE* maps = fopen("/proc/self/maps", "r");
  int count = 0;
  char line[512];
  while (maps && count < 512 && fgets(line, sizeof line, maps)) {
    unsigned long begin, end;
    Range& range = ranges[count];
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, range.rights) != 3) continue;
    range.begin = (char*)begin;
    range.end = (char*)end;
    range.shared = strstr(line, "memfd:") != nullptr;
    ++count;
  }
  if (maps) fclose(maps);
  return count;
}
struct Frame { uint32_t magic, kind; uint64_t args[8]; };
long argument() {
  static char buffer[4096];
  switch (next() % 6) {
    case 0: return (long)(next() % 16);
    case 1: return (long)next();
    case 2: return (long)buffer;
    case 3: return (long)(next() % 65536);
    case 4: return -1;
    default: return (long)&buffer[next() % 4000];
  }
}
void nasty() {
  BODY
}
}  // namespace
"""

CPP_ENTRY = """
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  static int calls = 0;
  if (++calls == CALL) nasty();
  for (int64_t row = 0; row < x.size(0); ++row) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < x.size(1); ++c) largest = std::max(largest, x(row, c));
    double sum = 0;
    for (int64_t c = 0; c < x.size(1); ++c) {
      y(row, c) = std::exp(x(row, c) - largest);
      sum += y(row, c);
    }
    for (int64_t c = 0; c < x.size(1); ++c) y(row, c) = static_cast<float>(y(row, c) / sum);
  }
}
"""

# Names of constructor, destructor and handler hooks that run `nasty` outside of a call.
CPP_HOOKS = {
    "constructor": "__attribute__((constructor)) static void hook() { nasty(); }",
    "destructor": "__attribute__((destructor)) static void hook() { nasty(); }",
    "static": "static struct Hook { Hook() { nasty(); } ~Hook() { nasty(); } } hook;",
    "atexit": "__attribute__((constructor)) static void hook() { atexit(nasty); }",
    "thread": "__attribute__((constructor)) static void hook() {\n"
    "  pthread_t thread;\n"
    "  pthread_create(&thread, nullptr, [](void*) -> void* { nasty(); return nullptr; },"
    " nullptr);\n"
    "}",
}


def _frame(random):
    kind = random.choice([0, 1, 2, 6, 100, 101, 101, 102, 102, 102, random.getrandbits(32)])
    first = random.choice([0, 1, 5, 7, 8, 20, 22, 24, 25, 40, 99, random.getrandbits(64)])
    magic = random.choice([MAGIC, MAGIC, MAGIC, 0, random.getrandbits(32)])
    return f"Frame{{{magic}u, {kind}u, {{{first}ull, {random.getrandbits(64)}ull}}}}"


def _draw(random):
    """Arguments of fragments: a count, a small one, a signal's number, a byte."""
    return (
        random.randrange(1, 300),
        random.randrange(1, 9),
        random.randrange(0, 65),
        random.randrange(0, 256),
    )


def _calls_and_signals(random):
    count, small, number, code = _draw(random)
    return {
        "system calls": f"for (int i = 0; i < {count}; ++i) syscall((long)(next() % 460), "
        "argument(), argument(), argument(), argument(), argument(), argument());",
        "one system call often": f"for (int i = 0; i < {count * 100}; ++i) "
        f"syscall({random.randrange(0, 460)}, argument(), argument(), argument());",
        "signal to itself": f"kill(getpid(), {number}); raise({random.randrange(1, 65)});",
        "signal to others": f"for (int pid = -2; pid < {small * 4}; ++pid) "
        f"if (pid != getpid()) kill(pid, {random.choice([9, 15, 18, 19])}); "
        f"kill(getppid(), {number});",
        "stops itself": "kill(getpid(), SIGSTOP);",
        "handles everything": "for (int s = 1; s < 65; ++s) signal(s, SIG_IGN); sigset_t all; "
        f"sigfillset(&all); sigprocmask(SIG_BLOCK, &all, nullptr); *(volatile int*){code} = 1;",
        "handler that returns": "for (int s = 1; s < 65; ++s) signal(s, [](int) {}); "
        f"*(volatile int*){code} = 1;",
    }


def _memory(random):
    count, small, _, code = _draw(random)
    return {
        "wild writes": f"for (int i = 0; i < {count}; ++i) *(volatile char*)(next() >> 17) = 1;",
        "writes all over": "for (int n = range_count(), i = 0; i < n; ++i) if (ranges[i].rights[1] "
        f"== 'w' && next() % {small} == 0) for (char* at = ranges[i].begin; at < ranges[i].end; "
        f"at += 1 + next() % {count * 8}) *at = (char)next();",
        "fills what it shares": "for (int n = range_count(), i = 0; i < n; ++i) if "
        "(ranges[i].shared && ranges[i].rights[1] == 'w') memset(ranges[i].begin, "
        f"{random.choice([0, 255, code])}, (size_t)(ranges[i].end - ranges[i].begin));",
        "unmaps": "for (int n = range_count(), i = 0; i < n; ++i) "
        f"if (next() % {small} == 0) munmap(ranges[i].begin, "
        "(size_t)(ranges[i].end - ranges[i].begin));",
        "unmaps what it shares": "for (int n = range_count(), i = 0; i < n; ++i) "
        "if (ranges[i].shared) munmap(ranges[i].begin, (size_t)(ranges[i].end - ranges[i].begin));",
        "changes rights": "for (int n = range_count(), i = 0; i < n; ++i) if (next() % "
        f"{small} == 0) mprotect(ranges[i].begin, (size_t)(ranges[i].end - ranges[i].begin), "
        f"{random.randrange(0, 8)});",
        "drops pages": "for (int n = range_count(), i = 0; i < n; ++i) madvise(ranges[i].begin, "
        f"(size_t)(ranges[i].end - ranges[i].begin), {random.choice([4, 8, 9, 10, 14, 21, 100])});",
    }


def _ends(random):
    _, small, _, code = _draw(random)
    return {
        "longjmp": "static jmp_buf buffer; for (char& c : *(char(*)[sizeof buffer])&buffer) "
        "c = (char)next(); longjmp(buffer, 1);",
        "stack overflow": "struct S { static long f(long n) { volatile char a[4096]; a[n % 4096] = "
        "1; return f(n + 1) + a[n % 4096]; } }; S::f(0);",
        "large frame": f"volatile char a[{small} << 20]; a[0] = 1; a[sizeof a - 1] = 1;",
        "exit": random.choice([f"exit({code});", f"_exit({code});", f"quick_exit({code});"]),
        "ends this thread": random.choice(["pthread_exit(nullptr);", "syscall(SYS_exit, 0);"]),
        "abort": random.choice(["abort();", "__builtin_trap();", "std::terminate();"]),
        "throws": random.choice(
            [f"throw {code};", "throw std::runtime_error(std::string(1 << 20, 'x'));"]
        ),
    }


def _socket(random):
    _, small, _, _ = _draw(random)
    return {
        "closes all": "close_range(0, ~0u, 0);",
        "closes some": f"close({random.randrange(0, 5)}); dup2({random.randrange(0, 6)}, 3);",
        "shuts the socket": f"shutdown(3, {random.randrange(0, 3)});",
        "a frame": f"Frame f = {_frame(random)}; (void)!write(3, &f, sizeof f);",
        "frames": f"for (int i = 0; i < {small}; ++i) {{ Frame f = {_frame(random)}; "
        "(void)!write(3, &f, sizeof f); }",
        "a frame with a text": "for (int n = range_count(), i = 0; i < n; ++i) if "
        "(ranges[i].shared && ranges[i].rights[1] == 'w') for (char* at = ranges[i].begin; at < "
        f"ranges[i].end; ++at) *at = (char)next(); Frame f = {_frame(random)}; "
        "(void)!write(3, &f, sizeof f);",
        "messages of any length": f"char data[9000] = {{}}; for (int i = 0; i < {small}; ++i) "
        f"(void)!send(3, data, next() % {random.choice([4, 80, 9000])}, MSG_DONTWAIT);",
        "flood": f"Frame f = {_frame(random)}; for (int i = 0; i < 10000; ++i) "
        "if (send(3, &f, sizeof f, MSG_DONTWAIT) < 0) break;",
        "reads the socket": "char data[4096]; for (int i = 0; i < 9; ++i) "
        f"(void)!recv(3, data, sizeof data, {random.choice(['0', 'MSG_DONTWAIT', 'MSG_PEEK'])});",
        "descriptors in frames": f"Frame f = {_frame(random)}; int fds[{small}]; "
        'for (int& fd : fds) fd = open("/candidate/kernel.so", O_RDONLY); iovec io{&f, sizeof f}; '
        "alignas(8) char control[512] = {}; msghdr m{}; m.msg_iov = &io; m.msg_iovlen = 1; "
        "m.msg_control = control; m.msg_controllen = CMSG_SPACE(sizeof fds); "
        "cmsghdr* h = CMSG_FIRSTHDR(&m); h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS; "
        f"h->cmsg_len = CMSG_LEN(sizeof fds); memcpy(CMSG_DATA(h), fds, sizeof fds); "
        f"for (int i = 0; i < {small}; ++i) sendmsg(3, &m, MSG_DONTWAIT);",
    }


def _floods(random):
    count, small, _, code = _draw(random)
    return {
        "threads that spin": f"for (int i = 0; i < {small * 4}; ++i) "
        "std::thread([] { for (volatile int j = 0;; ++j) {} }).detach();",
        "threads without end": "for (;;) std::thread([] { pause(); }).detach();",
        "threads that exit": f"for (int i = 0; i < {count}; ++i) std::thread([] {{}}).detach();",
        "huge stdout": f"char line[4096]; memset(line, {code}, sizeof line); for (int i = 0; i < "
        f"{count * 20}; ++i) fwrite(line, 1, sizeof line, {random.choice(['stdout', 'stderr'])});",
        "strange stdout": "for (int i = 0; i < 2000; ++i) putchar((int)(next() & 255)); "
        'fputs("\\x1b[2J\\x1b]0;x\\x07 PASS {\\"outcome\\": \\"faster\\"}\\n", stdout);',
        "takes memory": f"for (;;) {{ char* p = (char*)malloc({small} << 18); if (p) "
        f"memset(p, 1, {small} << 18); else break; }}",
        "maps memory": "for (;;) if (mmap(nullptr, 1ull << (20 + next() % 22), PROT_READ | "
        "PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED) break;",
        "floating point": f"fesetround({random.choice(['FE_UPWARD', 'FE_DOWNWARD'])}); "
        f"__builtin_ia32_ldmxcsr({random.choice(['0x9fc0', '0x0', '0x1f80', '0xffff'])});",
        "fills /tmp": 'int fd = open("/tmp/full", O_CREAT | O_WRONLY, 0600); char data[65536] = '
        "{}; for (int i = 0; i < 20000 && write(fd, data, sizeof data) > 0; ++i) {}",
        "many files": "for (int i = 0; i < 3000; ++i) { char name[64]; snprintf(name, sizeof name, "
        '"/tmp/f%d", i); open(name, O_CREAT | O_RDWR, 0600); mkdir("/tmp/d", 0); chdir("/tmp/d"); '
        "}",
    }


def _odds(random):
    return {
        "renames itself": random.choice(
            [
                'prctl(PR_SET_NAME, ") R 1 1 1 (");',
                'prctl(PR_SET_NAME, "a\\nb) T 0");',
                "prctl(PR_SET_DUMPABLE, 0);",
                "prctl(PR_SET_SECCOMP, 1);",
                "prctl(PR_SET_PDEATHSIG, 9);",
            ]
        ),
        "lowers its limits": f"rlimit none{{0, 0}}; setrlimit((__rlimit_resource_t)"
        f"{random.choice([0, 2, 3, 6, 7, 9])}, &none); nice(19);",
        "waits for ever": random.choice(["pause();", "for (;;) {}", "poll(nullptr, 0, -1);"]),
        "starts processes": random.choice(
            [
                "for (int i = 0; i < 50; ++i) if (fork() == 0) for (;;) {}",
                "if (vfork() == 0) _exit(0);",
                'char* a[] = {(char*)"/bin/sh", nullptr}; execve(a[0], a, nullptr);',
                'pid_t p; char* a[] = {(char*)"/bin/ls", nullptr}; posix_spawn(&p, a[0], nullptr, '
                "nullptr, a, nullptr);",
                "syscall(SYS_clone, 0x100 | 17, nullptr, nullptr, nullptr, nullptr);",
            ]
        ),
        "nothing": "",
    }


def cpp_fragments(random):
    """name: statements for the body of nasty(), with arguments drawn now."""
    fragments = {}
    for theme in (_calls_and_signals, _memory, _ends, _socket, _floods, _odds):
        fragments.update(theme(random))
    return fragments


def native(random):
    """(name of what it does, C++ text)."""
    fragments = cpp_fragments(random)
    names = random.sample(sorted(fragments), random.choice([1, 1, 1, 2, 3]))
    body = "\n  ".join(f"{{ {fragments[name]} }}" for name in names)
    hook = random.choice(["call", "call", "call", "later call", *CPP_HOOKS])
    call = {"call": 1, "later call": random.randrange(2, 60)}.get(hook, 0)
    text = CPP_HEAD.replace("SEED", str(random.getrandbits(63) | 1)).replace("BODY", body)
    text += CPP_HOOKS.get(hook, "") + CPP_ENTRY.replace("CALL", str(call))
    return f"{', '.join(names)} ({hook})", text


PYTHON_HEAD = """import ctypes, gc, os, signal, socket, struct, sys, threading, time
import torch


def nasty():
    BODY


TOP


class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.calls = 0
        CONSTRUCT

    def forward(self, x):
        self.calls += 1
        if self.calls == CALL:
            nasty()
        result = torch.softmax(x, dim=-1)
        return RESULT
"""


def python_fragments(random):
    """name: statements for the body of nasty()."""
    code, small = random.randrange(0, 256), random.randrange(1, 9)
    number = random.choice([0, 1, 20, 24, 25, 40, 77])
    frame = (
        f'struct.pack("<II8Q", {MAGIC}, {random.choice([101, 102, 102, 7])}, {number}, *[1] * 7)'
    )
    return {
        "exit": random.choice(
            [f"os._exit({code})", f"sys.exit({code})", "raise SystemExit('bye')", "os.abort()"]
        ),
        "signal": f"os.kill(os.getpid(), {random.randrange(1, 65)})",
        "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
        "reads nowhere": f"ctypes.string_at({code})",
        "writes nowhere": f"ctypes.memset({random.getrandbits(46)}, 1, {small})",
        "recursion": "f = lambda g: g(g)\n    f(f)",
        "deep recursion": "sys.setrecursionlimit(1 << 30)\n    f = lambda g: g(g)\n    f(f)",
        "silent exception": "class E(Exception):\n        def __str__(self):\n"
        "            raise E()\n    raise E()",
        "odd exception": random.choice(
            [
                "raise BaseException('x' * 1000000)",
                "raise KeyboardInterrupt",
                "raise MemoryError",
                "raise GeneratorExit",
                "raise SyntaxError('no', ('f', 'x', 'y', []))",
                "raise type('E\\udc80', (Exception,), {})('\\udcff')",
                "raise UnicodeDecodeError('utf-8', b'x', 0, 1, 'odd')",
            ]
        ),
        "takes memory": "blocks = []\n    while True:\n        blocks.append(bytearray(1 << 22))",
        "large tensor": "torch.ones(1 << 40)",
        "a frame": f"os.write(3, {frame})",
        "frames": f"for i in range({small}):\n        os.write(3, {frame})",
        "garbage to the socket": f"os.write(3, os.urandom({random.choice([1, 72, 3000])}))",
        "closes all": "os.closerange(0, 100)",
        "closes the socket": "os.close(3)",
        "threads": f"for i in range({small}):\n        threading.Thread(target=lambda: [0 for _ in "
        "iter(int, 1)], daemon=True).start()",
        "thread that writes": "threading.Thread(target=lambda: [os.write(3, b'x' * 72) for _ in "
        "range(3)], daemon=True).start()",
        "prints": f"print('\\x1b[2J' + 'x' * {small * 300000})\n    sys.stdout.flush()",
        "prints bytes": f"os.write({random.choice([1, 2])}, os.urandom(5000))",
        "closes stdout": "sys.stdout.close()\n    sys.stderr = None",
        "patches torch": random.choice(
            [
                "torch.Tensor.copy_ = None",
                "torch.Tensor = None",
                "torch.softmax = lambda *a, **k: None",
                "torch.set_grad_enabled = None",
            ]
        ),
        "patches builtins": random.choice(
            [
                "import builtins\n    builtins.isinstance = lambda *a: True",
                "import builtins\n    builtins.len = None",
                "time.perf_counter_ns = None",
                "sys.modules.clear()",
                "gc.collect = gc.freeze = None",
            ]
        ),
        "patches the host": random.choice(
            [
                "from assay_host import wire\n    wire.Frame = None",
                "from assay_host import blocks\n    blocks._run = lambda *a: 10 ** 40",
                "from assay_host import failure\n    failure.explain = None",
                "from assay_host import host\n    host._leave = lambda status: None",
            ]
        ),
        "forks": "os.fork()",
        "executes": "os.execv('/bin/true', ['true'])",
        "waits for ever": random.choice(["while True:\n        pass", "signal.pause()"]),
        "fills /tmp": "with open('/tmp/full', 'wb') as f:\n        while True:\n"
        "            f.write(bytes(1 << 20))",
        "names the product": "os.mkdir('/tmp/extensions.tar')",
        "nothing": "pass",
    }


PYTHON_RESULTS = [
    "result",
    "result",
    "result",
    "None",
    "7",
    "'text'",
    "[result, result]",
    "{'y': result}",
    "result.double()",
    "result.t()",
    "result[:0]",
    "result.to_sparse()",
    "torch.nn.Parameter(result)",
    "(r for r in [result])",
    "result.to('meta')",
    "torch.quantize_per_tensor(result, 0.1, 0, torch.qint8)",
    "type('T', (torch.Tensor,), {'shape': 7})(result)",
    "object()",
]


def python(random):
    """(name of what it does, Python text)."""
    fragments = python_fragments(random)
    name = random.choice(sorted(fragments))
    where = random.choice(["import", "constructor", "call", "call", "later call"])
    call = {"call": 1, "later call": random.randrange(2, 60)}.get(where, 0)
    text = PYTHON_HEAD.replace("BODY", fragments[name]).replace("CALL", str(call))
    text = text.replace("TOP", "nasty()" if where == "import" else "")
    text = text.replace("CONSTRUCT", "nasty()" if where == "constructor" else "")
    result = random.choice(PYTHON_RESULTS)
    return f"{name} ({where}), returns {result}", text.replace("RESULT", result)
