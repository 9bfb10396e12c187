"""The time and memory of references in float64, with cuDNN and without.

    python3 bench/gpu_float64.py KERNELBENCH/KernelBench 1/61 1/68 2/3 ...

Prints a line of JSON a problem, at the size that its file has. Needs a GPU and PyTorch.
"""

import glob
import importlib.util
import json
import sys
import time

import torch


def load(root, level, number):
    path = glob.glob(f"{root}/level{level}/{number}_*.py")[0]
    spec = importlib.util.spec_from_file_location("problem", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(model, inputs, cudnn):
    """Returns the outputs of a second call, its time [ms] and what it takes besides [GB]."""
    torch.backends.cudnn.enabled = cudnn
    model(*inputs)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    begin = time.monotonic()
    outputs = model(*inputs)
    torch.cuda.synchronize()
    time_ms = (time.monotonic() - begin) * 1e3
    torch.backends.cudnn.enabled = True
    return outputs, round(time_ms, 1), round((torch.cuda.max_memory_allocated() - before) / 1e9, 2)


def row_of(root, problem):
    row = {"problem": problem}
    with torch.device("cuda"):
        module = load(root, *problem.split("/"))
        model = module.Model(*module.get_init_inputs()).cuda().eval()
        inputs = [v.cuda() if torch.is_tensor(v) else v for v in module.get_inputs()]
    _, row["float32_ms"], _ = measured(model, inputs, True)
    model = model.double()
    doubles = [v.double() if torch.is_tensor(v) and v.is_floating_point() else v for v in inputs]
    del inputs
    own, row["without_ms"], row["without_GB"] = measured(model, doubles, False)
    theirs, row["with_ms"], row["with_GB"] = measured(model, doubles, True)
    row["differ"] = float((own - theirs).abs().max() / own.abs().max())
    return row


def main():
    torch.set_grad_enabled(False)
    for problem in sys.argv[2:]:
        try:
            print(json.dumps(row_of(sys.argv[1], problem)), flush=True)
        except torch.cuda.OutOfMemoryError as error:
            print(json.dumps({"problem": problem, "error": str(error)[:100]}), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
