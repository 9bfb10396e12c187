"""Every problem of the suite runs at its smallest size and at its ragged ones, in the form that the
host expects.
"""

import pathlib
import random
import re
import sys
import tomllib

import torch

MECHANISMS = "fusion indexing layout online reduction scan sorting tiling vectorising".split()
PROBLEMS = pathlib.Path(__file__).resolve().parents[1] / "problems"


def load(path, constants):
    """The problem file's names, with constants changed before anything is derived from them."""
    source = path.read_text()
    for name, value in constants.items():
        source, count = re.subn(rf"^{name} = .*$", f"{name} = {value!r}", source, flags=re.M)
        if count != 1:
            raise ValueError(f"{path.name} has no constant {name}")
    names = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), names)
    return names


def run(names, seed):
    """The outputs of one forward, as a list."""
    torch.manual_seed(seed)
    random.seed(seed)
    model = names["Model"](*names["get_init_inputs"]())
    torch.manual_seed(seed + 1)
    result = model(*names["get_inputs"]())
    return list(result) if isinstance(result, (list, tuple)) else [result]


def same(left, right):
    return all(map(torch.equal, left, right))


def faults_of(problem):
    path = PROBLEMS / problem["file"]
    if set(problem["sizes"]) != {"tiny", "small", "large"}:
        yield "needs the sizes tiny, small and large"
    if problem.get("mechanism") not in MECHANISMS:
        yield f"its mechanism is none of {', '.join(MECHANISMS)}"
    if not problem.get("lesson"):
        yield "has no lesson"
    for size, constants in problem["sizes"].items():
        # Large sizes are loaded, which derives nothing of their extent, and never run here.
        names = load(path, constants)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if name not in names:
                yield f"{size}: no {name}"
        if not names.get("__doc__"):
            yield "no docstring"
        if size != "tiny":
            continue
        with torch.no_grad():
            first, again, other = run(names, 1), run(names, 1), run(names, 2)
        for tensor in first:
            if tensor.dtype not in (torch.float32, torch.int64):
                yield f"{size}: an output is {tensor.dtype}"
            if not bool(torch.isfinite(tensor).all()):
                yield f"{size}: an output is not finite"
        if not same(first, again):
            yield f"{size}: one seed gives two outputs"
        if same(first, other):
            yield f"{size}: two seeds give one output"
    yield from ragged_faults(problem, path)


def ragged_faults(problem, path):
    """Any mix of the ragged ranges' ends is a problem that runs."""
    ranges = problem.get("ragged", {})
    if not ranges:
        yield "has no ragged ranges"
    mixes = [{name: ends[0] for name, ends in ranges.items()}]
    mixes.append({name: ends[1] for name, ends in ranges.items()})
    mixes += [{name: ends[one == name] for name, ends in ranges.items()} for one in ranges]
    for constants in mixes:
        try:
            with torch.no_grad():
                outputs = run(load(path, constants), 1)
            if not all(bool(torch.isfinite(tensor).all()) for tensor in outputs):
                yield f"{constants}: an output is not finite"
        except Exception as error:
            yield f"{constants}: {error}"


def main():
    problems = tomllib.loads((PROBLEMS / "suite.toml").read_text())["problem"]
    wrong = [f"{problem['name']}: {fault}" for problem in problems for fault in faults_of(problem)]
    listed = {problem["file"] for problem in problems}
    for path in sorted(PROBLEMS.rglob("*.py")):
        if path.relative_to(PROBLEMS).as_posix() not in listed:
            wrong.append(f"{path.name}: not in suite.toml")
    for message in wrong:
        print(message)
    print(f"problems_test: {len(problems)} problems, {len(wrong)} faults")
    return 1 if wrong or not problems else 0


if __name__ == "__main__":
    sys.exit(main())
