"""Whether a kernel that watches the device's clock sees the work of another process. Processes take
turns on a GPU, so while another one's kernels run the watching kernel stands still: a gap in its
readings. Appends one JSON object a case to RESULTS:

    python3 bench/gpu_turns.py RESULTS.jsonl [--rounds 5]

A second process has `launches` kernels run that are busy for `work_ns` each, while a kernel of one
thread here reads the clock. `gaps_ns`: the sum of its gaps of more than GAP_NS, `longest_ns` and
`gaps`: the longest, and how many; `watched_ns`: from its first reading to its last. `began_ns`:
when the other's first kernel began, after the first reading; `worked_ns`: from there to its last
one's end, by the same clock; `took_ns`: by the other process's own, from launching to the end.
`held` cases end the watch HOLD_S after the other was told to begin, whether it has begun or not:
`began_after_ns` is how long after the last reading it began, below 0 where it had a turn before.
Launches 0: nobody does anything. Needs CuPy.
"""
import argparse
import json
import pathlib
import select
import subprocess
import sys
import time

import rows

# A reading takes as long as a look at the host's memory, some 2 us.
GAP_NS, LIMIT_NS, HOLD_S, ANSWER_S = 5_000, 200_000_000, 0.003, 60
# (launches, work of each [ns], whether the watch ends by itself)
CASES = [(0, 0, True), (1, 10_000, False), (1, 50_000, False), (1, 200_000, False)]
CASES += [(20, 10_000, False), (1, 50_000, True), (20, 10_000, True)]

SOURCE = r"""
__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// seen: the first and the last reading, the sum of the gaps, the longest, their number
extern "C" __global__ void watch(const volatile int* stop, unsigned long long limit_ns,
                                 unsigned long long gap_ns, unsigned long long* seen) {
  const unsigned long long begin = now_ns();
  unsigned long long last = begin, sum = 0, longest = 0, count = 0;
  while (*stop == 0 && last - begin < limit_ns) {
    const unsigned long long now = now_ns(), passed = now - last;
    if (passed > gap_ns) {
      sum += passed;
      count += 1;
      longest = passed > longest ? passed : longest;
    }
    last = now;
  }
  seen[0] = begin, seen[1] = last, seen[2] = sum, seen[3] = longest, seen[4] = count;
}

// seen: when the first of the launches began, and the last one ended
extern "C" __global__ void work(unsigned long long work_ns, int first, unsigned long long* seen) {
  const unsigned long long begin = now_ns();
  if (first) seen[0] = begin;
  while (now_ns() - begin < work_ns) {
  }
  seen[1] = now_ns();
}
"""


def serve():
    """The other process: a line with launches and their work in, one with what came of it out."""
    import cupy

    work = cupy.RawModule(code=SOURCE).get_function("work")
    seen = cupy.zeros(2, cupy.uint64)
    work((1,), (1,), (cupy.uint64(1000), 1, seen))
    cupy.cuda.Device().synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        launches, work_ns = json.loads(line)
        begin = time.perf_counter_ns()
        for index in range(launches):
            work((1,), (1,), (cupy.uint64(work_ns), int(index == 0), seen))
        cupy.cuda.Device().synchronize()
        took_ns = time.perf_counter_ns() - begin
        print(json.dumps([int(seen[0]), int(seen[1]), took_ns]), flush=True)


def answer(other):
    if not select.select([other.stdout], [], [], ANSWER_S)[0]:
        raise SystemExit(f"the other process said nothing for {ANSWER_S} s")
    return other.stdout.readline()


def case(other, launches, work_ns, held):
    import cupy
    import numpy

    memory = cupy.cuda.alloc_pinned_memory(64)
    stop = numpy.frombuffer(memory, numpy.int32, 1)
    stop[0] = 0
    watch = cupy.RawModule(code=SOURCE).get_function("watch")
    seen = cupy.zeros(5, cupy.uint64)
    arguments = (cupy.uint64(memory.ptr), cupy.uint64(LIMIT_NS), cupy.uint64(GAP_NS), seen)
    watch((1,), (1,), arguments)
    time.sleep(HOLD_S)
    if launches:
        other.stdin.write(json.dumps([launches, work_ns]) + "\n")
        other.stdin.flush()
    if held:
        time.sleep(HOLD_S)
        stop[0] = 1
    told = json.loads(answer(other)) if launches else None
    stop[0] = 1
    cupy.cuda.Device().synchronize()
    begin, end, gaps_ns, longest_ns, gaps = (int(value) for value in seen.get())
    row = {"launches": launches, "work_ns": work_ns, "held": held, "watched_ns": end - begin}
    row |= {"gaps_ns": gaps_ns, "longest_ns": longest_ns, "gaps": gaps}
    if told:
        began, ended, took_ns = told
        row |= {"began_ns": began - begin, "worked_ns": ended - began, "took_ns": took_ns}
        row["began_after_ns"] = began - end
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve()
    if arguments.results is None:
        parser.error("name the file for the results")
    command = [sys.executable, __file__, "--serve"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        try:
            if answer(other).strip() != "ready":
                raise SystemExit("the other process did not start: is CuPy there?")
            for number in range(arguments.rounds):
                for launches, work_ns, held in CASES:
                    row = {"round": number} | case(other, launches, work_ns, held)
                    rows.append(arguments.results, row)
                    print(json.dumps(row), flush=True)
        finally:
            other.kill()


if __name__ == "__main__":
    main()
