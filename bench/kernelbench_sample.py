"""KernelBench's own evaluation of one sample, in this process; bench/run_speed.py starts it.

    python3 bench/kernelbench_sample.py CHECKOUT PROBLEM.py CANDIDATE.py --build FOLDER \
        --turn LOCK --out FILE

Calls KernelBench's eval_kernel_against_ref as its scripts/eval_from_generations.py does for a
sample: the candidate is built in FOLDER, compared with the reference in 5 trials, and both are
timed in 100. FILE gets one JSON object: the verdict, and where the time went [s]. Modules that
KernelBench imports and its evaluation does not need have stand-ins where they are not installed;
the object names them. With --turn LOCK the process waits for that file's lock when the candidate
is built, and keeps it to its end: several build side by side, and one at a time is measured.
"""
import argparse
import copy
import fcntl
import hashlib
import importlib.util
import json
import pathlib
import platform
import sys
import time
import types

BEGIN = time.perf_counter()
CORRECTNESS_TRIALS, TIMED_TRIALS = 5, 100
TEXT_LENGTH_MAX = 600


class Record:
    """Stands in for pydantic.BaseModel, of which KernelBench uses that fields have defaults."""

    def __init__(self, **values):
        for name in type(self).__annotations__:
            setattr(self, name, values.get(name, copy.deepcopy(getattr(type(self), name))))


def _nothing(*_arguments, **_options):
    """Stands in for a function whose result KernelBench's evaluation does not use."""


STAND_INS = {
    "dotenv": {"load_dotenv": _nothing},
    "litellm": {"completion": _nothing},
    "openai": {"OpenAI": _nothing},
    "pydantic": {"BaseModel": Record},
    "requests": {},
    "tqdm": {"tqdm": _nothing},
}


def stand_in():
    """Puts stand-ins where a module is missing. Returns the names of these."""
    missing = [name for name in STAND_INS if importlib.util.find_spec(name) is None]
    for name in missing:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(STAND_INS[name])
    return missing


class Parts:
    """Seconds by part of the evaluation."""

    def __init__(self):
        self.seconds = {}

    def timed(self, name, function):
        """The function, whose calls are added to the part."""

        def call(*arguments, **options):
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                took_s = time.perf_counter() - begin
                self.seconds[name] = self.seconds.get(name, 0.0) + took_s

        return call

    def built_in_turn(self, build, lock):
        """The function that builds, which returns when the open file's lock is this process's."""

        def call(*arguments, **options):
            built = self.timed("build_s", build)(*arguments, **options)
            self.timed("waited_s", fcntl.flock)(lock, fcntl.LOCK_EX)
            return built

        return call

    def watch(self, evaluation, lock):
        """Times what eval_kernel_against_ref calls. A wrong candidate is not timed; its reference
        is.
        """
        for name in ("load_custom_model", "load_custom_model_with_tempfile"):
            setattr(evaluation, name, self.built_in_turn(getattr(evaluation, name), lock))
        evaluation.run_and_check_correctness = self.timed(
            "correctness_s", evaluation.run_and_check_correctness
        )
        of_method = evaluation.timing.get_timing_function
        evaluation.timing.get_timing_function = lambda *arguments: self.timed(
            "timing_s", of_method(*arguments)
        )


def blob_of(path):
    """The file's name in git's store: it tells which versions of KernelBench have it."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def verdict_of(result):
    """The fields of KernelBench's result; None stands for its 'please retry'."""
    if result is None:
        return {"compiled": None, "correct": None, "error": "KernelBench asks for a retry"}
    return {
        "compiled": result.compiled,
        "correct": result.correctness,
        "runtime_ms": result.runtime,
        "reference_runtime_ms": result.ref_runtime,
        "runtime_stats": result.runtime_stats,
        "metadata": {
            name: str(value)[:TEXT_LENGTH_MAX] for name, value in result.metadata.items()
        },
    }


def evaluate(evaluation, arguments, device):
    """The verdict, as KernelBench's script records it."""
    try:
        result = evaluation.eval_kernel_against_ref(
            original_model_src=arguments.problem.read_text(encoding="utf-8"),
            custom_model_src=arguments.candidate.read_text(encoding="utf-8"),
            measure_performance=True,
            timing_method="cuda_event",
            verbose=False,
            num_correct_trials=CORRECTNESS_TRIALS,
            num_perf_trials=TIMED_TRIALS,
            build_dir=str(arguments.build),
            device=device,
            backend=arguments.backend,
            precision=evaluation.get_torch_dtype_from_string("fp32"),
        )
    except Exception as error:  # the script counts each of them as not compiled
        return {"compiled": False, "correct": False, "error": repr(error)[:TEXT_LENGTH_MAX]}
    return verdict_of(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path, help="of KernelBench, with its src")
    parser.add_argument("problem", type=pathlib.Path)
    parser.add_argument("candidate", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--turn", type=pathlib.Path, required=True, help="a file to lock")
    parser.add_argument("--backend", choices=("cuda", "triton"), default="cuda")
    parser.add_argument("--arch", default="Hopper", help="KernelBench's gpu_arch")
    parser.add_argument("--device", default="cuda:0")
    arguments = parser.parse_args()
    source = arguments.checkout / "src" / "kernelbench" / "eval.py"
    if not source.is_file():
        sys.exit(f"{source} does not exist: name a checkout of KernelBench with its sources")
    stand_ins = stand_in()
    sys.path.insert(0, str(source.parents[1]))
    import torch
    from kernelbench import eval as evaluation
    from kernelbench import utils

    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU, and KernelBench evaluates on a GPU alone")
    parts = Parts()
    parts.seconds["import_s"] = time.perf_counter() - BEGIN
    utils.set_gpu_arch([arguments.arch])
    device = torch.device(arguments.device)
    with open(arguments.turn, "wb") as lock:
        parts.watch(evaluation, lock)
        row = evaluate(evaluation, arguments, device)
    parts.seconds["process_s"] = time.perf_counter() - BEGIN
    row |= {
        "parts": {name: round(seconds, 3) for name, seconds in parts.seconds.items()},
        "card": torch.cuda.get_device_name(device),
        "python": platform.python_version(),
        "pytorch": torch.__version__,
        "cuda": torch.version.cuda,
        "eval_blob": blob_of(source),
        "stand_ins": stand_ins,
    }
    arguments.out.write_text(json.dumps(row), encoding="utf-8")


if __name__ == "__main__":
    main()
