"""How long KernelBench's way of evaluating one CUDA candidate takes, step by step: a fresh process
imports PyTorch, compiles the candidate with load_inline, compares five calls with the reference's,
and times a hundred with events. Run as a script it is that process: it prints one JSON object.

    python3 bench/gpu_kernelbench_path.py PROBLEM.py KERNEL.cu [--set NAME=VALUE ...]

KERNEL.cu is of the device form with one launch of `softmax`, a block a row (kernels/softmax); its
text is compiled unchanged, as a candidate for KernelBench would hold it.
"""
import argparse
import json
import pathlib
import re
import tempfile
import time

BEGIN = time.perf_counter()
TRIALS, TIMED, WARM_UP = 5, 100, 3
TOLERANCE = 1e-2

BINDING = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
torch::Tensor run(torch::Tensor x) {
  auto out = torch::empty_like(x);
  softmax<<<x.size(0), BLOCK, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>());
  return out;
}
"""


def load_problem(path, constants):
    """The problem's module, with some of its constants replaced."""
    text = path.read_text(encoding="utf-8")
    for name, value in constants.items():
        text, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        if found != 1:
            raise SystemExit(f"{path} has no constant {name} on a line of its own")
    namespace = {}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", type=pathlib.Path)
    parser.add_argument("kernel", type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()

    import torch
    from torch.utils.cpp_extension import load_inline

    steps = {"import_s": time.perf_counter() - BEGIN}

    def step(name, begin):
        torch.cuda.synchronize()
        steps[name] = time.perf_counter() - begin

    problem = load_problem(arguments.problem, dict(word.split("=") for word in arguments.set))
    begin = time.perf_counter()
    torch.zeros(1, device="cuda")
    model = problem["Model"](*problem["get_init_inputs"]()).cuda()
    step("start_cuda_s", begin)

    begin = time.perf_counter()
    kernel = arguments.kernel.read_text(encoding="utf-8")
    block = re.search(r"//! *tune +BLOCK *= *(\d+)", kernel).group(1)
    columns = problem["get_inputs"]()[0].shape[1]
    source = f"#define BLOCK {block}\n#define COLUMNS {columns}\n" + kernel + BINDING
    with tempfile.TemporaryDirectory() as folder:
        built = load_inline(
            name="candidate",
            cpp_sources="torch::Tensor run(torch::Tensor x);",
            cuda_sources=source,
            functions=["run"],
            build_directory=folder,
        )
    step("compile_s", begin)

    begin = time.perf_counter()
    for trial in range(TRIALS):
        torch.manual_seed(trial)
        inputs = [value.cuda() for value in problem["get_inputs"]()]
        expected, given = model(*inputs), built.run(*inputs)
        if not torch.allclose(expected, given, rtol=TOLERANCE, atol=TOLERANCE):
            raise SystemExit("the candidate is wrong")
    step("compare_s", begin)

    begin = time.perf_counter()
    times = []
    for _ in range(WARM_UP):
        built.run(*inputs)
    torch.cuda.synchronize()
    for _ in range(TIMED):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        built.run(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    step("time_s", begin)
    steps["whole_s"] = time.perf_counter() - BEGIN
    steps["candidate_us"] = sum(times) / len(times)
    print(json.dumps(steps))


if __name__ == "__main__":
    main()
