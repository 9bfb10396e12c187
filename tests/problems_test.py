"""Every problem of the suite runs at its smallest size, in the form that the host expects."""

import pathlib
import re
import sys
import tomllib

import torch

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
    torch.manual_seed(seed)
    model = names["Model"](*names["get_init_inputs"]())
    torch.manual_seed(seed + 1)
    return model(*names["get_inputs"]())


def faults_of(problem):
    path = PROBLEMS / problem["file"]
    if set(problem["sizes"]) != {"tiny", "small", "large"}:
        yield "needs the sizes tiny, small and large"
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
        if first.dtype != torch.float32 or not bool(torch.isfinite(first).all()):
            yield f"{size}: the output is not finite float32"
        if not torch.equal(first, again):
            yield f"{size}: one seed gives two outputs"
        if torch.equal(first, other):
            yield f"{size}: two seeds give one output"


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
