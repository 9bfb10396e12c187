"""Another program on the GPU, which holds its memory."""
import contextlib
import subprocess
import sys

_HOLDS = """import sys, torch
free_bytes, _ = torch.cuda.mem_get_info()
held = torch.empty(free_bytes - int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def all_but(gibibytes):
    """All but so much of the memory is held [GiB]."""
    command = [sys.executable, "-c", _HOLDS, str(gibibytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        if other.stdout.readline() != b"held\n":
            raise MemoryError(f"nobody could hold all but {gibibytes} GiB of the GPU's memory")
        try:
            yield
        finally:
            other.stdin.close()
