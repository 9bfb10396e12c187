"""assay import and assay export: samples of each format, imported, judged and written back."""
import asyncio
import contextlib
import importlib
import json
import sys
import types

import pytest

from conftest import ENVIRONMENT, GOOD, ROOT, USAGE

SAMPLES = ROOT / "tests" / "formats"
QUICK = ("--correctness-only", "--threads", "1", "--no-save", "--quiet")


def outcomes(folder):
    """{candidate's name: outcome} of a judged import."""
    rows = map(json.loads, (folder / "verdicts.jsonl").read_text().splitlines())
    return {row["candidate"].split("/")[-1]: row["verdict"]["outcome"] for row in rows}


def imported(assay, kind, sample, *more):
    run = assay("import", kind, SAMPLES / sample, "-o", "out", *more)
    assert run.code == GOOD, run
    return assay.home / "out"


@pytest.fixture
def judged(assay):
    def judge(kind, sample, *more):
        folder = imported(assay, kind, sample, *more)
        run = assay("run", folder / "manifest.jsonl", *QUICK)
        assert run.code == GOOD, run
        return folder

    return judge


def test_rows_of_cuda_l1_are_judged(judged):
    assert outcomes(judged("cuda-l1", "cuda-l1.jsonl")) == {
        "level1_19.py": "correct",
        "level1_19_2.py": "wrong",
    }


def test_popcorn_there_and_back(assay, judged):
    folder = judged("popcorn", "popcorn/scale_py")
    found = outcomes(folder)
    assert found == {"added_0.py": "correct", "added_1.py": "correct"} | {
        "wrong_0.py": "wrong",
        "wrong_1.py": "wrong",
    }
    run = assay("export", "popcorn", folder, "-o", "back")
    assert run.code == GOOD, run
    right = json.loads((assay.home / "back" / "results" / "added.json").read_text())
    result = right["runs"]["test"]["run"]["result"]
    assert result["test-count"] == "2" and result["check"] == "pass"
    assert result["test.1.spec"] == "size: 32; seed: 6256"
    wrong = json.loads((assay.home / "back" / "results" / "wrong.json").read_text())
    assert not wrong["runs"]["test"]["run"]["passed"]


def test_popcorns_checker_accepts_several_answers(assay):
    task = assay.home / "chosen_py"
    task.mkdir()
    files = [{"name": name, "source": name} for name in ("reference.py",)]
    case = {"lang": "py", "tests": [{"size": 64, "seed": 7}], "files": files}
    (task / "task.yml").write_text(json.dumps(case))
    (task / "reference.py").write_text(CHOOSES)
    kernel = "import torch\ndef custom_kernel(data):\n    return torch.topk(data, 4, {}).indices\n"
    for name, words in (("smallest_first", "sorted=True"), ("least", "largest=False")):
        text = kernel.format(words)
        (task / f"{name}.py").write_text(
            text.replace(".indices", ".indices.flip(-1)") if name == "smallest_first" else text
        )
    names = [task / "smallest_first.py", task / "least.py"]
    run = assay("import", "popcorn", task, *names, "-o", "out")
    assert run.code == GOOD, run
    run = assay("run", assay.home / "out" / "manifest.jsonl", *QUICK)
    found = outcomes(assay.home / "out")
    assert found == {"smallest_first_0.py": "correct", "least_0.py": "wrong"}, run
    row = json.loads((assay.home / "out" / "verdicts.jsonl").read_text().splitlines()[0])
    assert row["verdict"]["correctness"]["tolerance"] == "check", row


CHOOSES = """import torch
def generate_input(size, seed):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))
def ref_kernel(data):
    return torch.topk(data, 4, sorted=False).indices
def check_implementation(data, output):
    if (output < 0).any() or (output >= data.shape[0]).any():
        return False, "an index is out of range"
    mine = torch.sort(data[output], descending=True).values
    return bool((mine == torch.topk(data, 4).values).all()), "these are not the 4 largest"
"""


def test_flashinfer_there_and_back(assay, judged):
    folder = judged("flashinfer", "flashinfer")
    assert outcomes(folder) == {"into_1f0c2d3e.py": "correct", "returned_1f0c2d3e.py": "wrong"}
    run = assay("export", "flashinfer", folder, "-o", "back")
    assert run.code == GOOD, run
    (path,) = (assay.home / "back").rglob("*.jsonl")
    assert path == assay.home / "back/traces/example/gather/scaled_gather_d16.jsonl"
    traces = {trace["solution"]: trace for trace in map(json.loads, path.read_text().splitlines())}
    assert traces["into"]["evaluation"]["status"] == "PASSED"
    assert traces["returned"]["evaluation"]["status"] == "INCORRECT_NUMERICAL"
    assert traces["into"]["workload"]["uuid"] == "1f0c2d3e-0000"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind, sample, expected",
    [
        ("kernelbook", "kernelbook.json", {"Halved.py": "correct"}),
        (
            "ai-cuda-engineer",
            "ai-cuda-engineer.csv",
            {"level1_19_ReLU_scaled_clamp_scaled.py": "correct"},
        ),
        (
            "robust-kbench",
            "robust-kbench",
            {"relu_scaled.py": "correct", "relu_scaled_config2.py": "correct"},
        ),
        (
            "kernelbench-hard",
            "kernelbench-hard/benchmarks/hard/problems-h100",
            {
                "20260101_000000_player_one_01_scaled_relu_shape1.py": "correct",
                "20260101_000000_player_one_01_scaled_relu_shape2.py": "correct",
                "20260101_000001_player_two_01_scaled_relu_shape1.py": "wrong",
                "20260101_000001_player_two_01_scaled_relu_shape2.py": "wrong",
            },
        ),
    ],
)
def test_each_other_format_is_judged(judged, kind, sample, expected):
    assert outcomes(judged(kind, sample)) == expected


def test_parquet_needs_pyarrow(assay, write):
    path = write("rows.parquet", b"PAR1 is no table PAR1")
    run = assay("import", "kernelbook", path, "-o", "out")
    assert (run.code, "install pyarrow" in run.err) == (ENVIRONMENT, True) or (
        run.code == USAGE and "no parquet file" in run.err
    ), run
    assert not (assay.home / "out").exists()


def test_rows_of_a_parquet_file(assay):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = json.loads((SAMPLES / "kernelbook.json").read_text())
    path = assay.home / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    run = assay("import", "kernelbook", path, "-o", "out")
    assert run.code == GOOD, run
    assay("import", "kernelbook", SAMPLES / "kernelbook.json", "-o", "from_json")
    names = [sorted(each.name for each in (assay.home / folder).rglob("*.py"))
             for folder in ("out", "from_json")]  # fmt: skip
    assert names[0] == names[1] and names[0]


def test_an_import_never_overwrites(assay):
    folder = imported(assay, "cuda-l2", "cuda-l2")
    origin = json.loads((folder / "origin.jsonl").read_text())
    assert origin["origin"]["claimed_speedup"] == 1.673
    again = assay("import", "cuda-l2", SAMPLES / "cuda-l2", "-o", "out")
    assert again.code == USAGE and "is not empty" in again.err, again


MODULES = ("assay_judge", "assay_episodes", "assay_kernels", "evaluator", "evaluate", "models")


@pytest.fixture
def modules(monkeypatch):
    """Imports a module of an exported folder, as its framework does."""

    def load(folder, name):
        for known in MODULES + (name,):
            sys.modules.pop(known, None)
        monkeypatch.syspath_prepend(str(folder))
        return importlib.import_module(name)

    yield load
    for name in MODULES + ("server",):
        for known in [key for key in sys.modules if key.split(".")[0] == name]:
            del sys.modules[known]


def exported(assay, kind, *more):
    run = assay("export", kind, "softmax", "--size", "tiny", "-o", kind, *more)
    assert run.code == GOOD, run
    return assay.home / kind


def on_path(assay, monkeypatch):
    """The built program, its state and caches are those that a framework's process finds."""
    for name, value in assay.environment.items():
        monkeypatch.setenv(name, value)
    from conftest import ASSAY

    monkeypatch.setenv("PATH", f"{ASSAY.parent}:{assay.environment['PATH']}")
    monkeypatch.syspath_prepend(str(ROOT / "python"))  # what the wheel installs


def test_evaluators_of_searches(assay, modules, monkeypatch):
    on_path(assay, monkeypatch)
    folder = exported(assay, "openevolve", "--form", "native")
    assert "EVOLVE-BLOCK-START" in (folder / "initial_program.cpp").read_text()
    evaluator = modules(folder, "evaluator")
    judge = sys.modules["assay_judge"]
    judge.TERMS.update(threads=1, budget_s=8)
    right = evaluator.evaluate(ROOT / "kernels" / "softmax" / "fused.cpp")
    assert right["correct"] == 1.0 and right["combined_score"] > 0.0
    wrong = evaluator.evaluate(ROOT / "kernels" / "softmax" / "off_by_one.cpp")
    assert wrong["combined_score"] == 0.0 and wrong["correct"] == 0.0
    judge.ARGUMENTS[0] = "no_such_problem"
    with pytest.raises(judge.assay.UsageError, match="no_such_problem"):
        evaluator.evaluate(ROOT / "kernels" / "softmax" / "fused.cpp")


def test_shinka_tells_a_failure_of_the_machine_from_a_wrong_answer(assay, modules, monkeypatch):
    on_path(assay, monkeypatch)
    folder = exported(assay, "shinka", "--form", "native")
    assert "EVOLVE-BLOCK-START" in (folder / "initial.cpp").read_text()
    evaluate = modules(folder, "evaluate")
    judge = sys.modules["assay_judge"]
    assert judge.terms_of(["a", "--set", "N=1=2", "--grad"])["set"] == {"N": "1=2"}
    results = assay.home / "results"
    assert evaluate.main(ROOT / "kernels" / "softmax" / "off_by_one.cpp", results) == 0
    assert not json.loads((results / "correct.json").read_text())["correct"]
    assert json.loads((results / "metrics.json").read_text())["combined_score"] == 0.0
    monkeypatch.setenv("PATH", "/nonexistent")
    other = assay.home / "other"
    assert evaluate.main(ROOT / "kernels" / "softmax" / "fused.cpp", other) == 1
    assert not (other / "metrics.json").exists()


def stand_ins_for_openenv(monkeypatch):
    """The parts of OpenEnv that the export uses, as small as they can be."""

    class Fields:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    made = {
        "openenv": {},
        "openenv.core": {},
        "openenv.core.env_server": {},
        "openenv.core.env_server.types": {"Action": Fields, "Observation": Fields, "State": Fields},
        "openenv.core.env_server.interfaces": {"Environment": object},
        "openenv.core.env_server.http_server": {"create_app": lambda *parts, **named: parts},
    }
    for name, members in made.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)


def test_openenv_plays_an_episode(assay, modules, monkeypatch):
    on_path(assay, monkeypatch)
    stand_ins_for_openenv(monkeypatch)
    app = modules(exported(assay, "openenv"), "server.app").app
    make, action, _ = app
    environment = make()
    try:
        first = environment.reset(seed=1)
        assert "torch.softmax" in first.prompt and not first.done
        source = (ROOT / "kernels" / "softmax" / "off_by_one.cpp").read_text()
        after = environment.step(action(code=f"```cpp\n{source}```"))
        assert after.outcome == "wrong" and after.reward == 0 and after.compilation_success
        assert environment.state.step_count == 1
    finally:
        environment.close()


def stand_ins_for_verifiers(monkeypatch):
    """The parts of verifiers.v1 that the export uses: classes by their configs, and fields."""

    class Fields:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    class Part:
        def __init__(self, *parts):
            self.parts = parts

        def __class_getitem__(cls, _):
            return cls

    class Task(Part):
        data = property(lambda self: self.parts[0])

    class Taskset(Part):
        config = property(lambda self: self.parts[0])

        def __iter__(self):
            return iter(self.load())

    class Env(Part):
        taskset = property(lambda self: self.parts[0])

    named = ("TasksetConfig", "TaskData", "EnvConfig", "AgentConfig", "SubprocessConfig")
    made = {name: type(name, (Fields,), {"task": None}) for name in named}
    made |= {"Task": Task, "Taskset": Taskset, "Env": Env}
    for name, members in (("verifiers", {}), ("verifiers.v1", made)):
        module = types.ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["verifiers"].v1 = sys.modules["verifiers.v1"]


class Player:
    """An agent whose answers are given: `interaction(task)` holds one exchange open."""

    def __init__(self, *answers):
        self.answers, self.told, self.rewards, self.trace = list(answers), [], {}, self

    def interaction(self, _):
        return contextlib.nullcontext(self)

    async def turn(self, message=None):
        self.told.append(message)
        answer = self.answers.pop(0) if self.answers else None
        return types.SimpleNamespace(terminated=answer is None, last_reply=answer)

    def record_reward(self, name, value):
        self.rewards[name] = value


def test_verifiers_plays_an_episode(assay, modules, monkeypatch):
    on_path(assay, monkeypatch)
    stand_ins_for_verifiers(monkeypatch)
    kernels = modules(exported(assay, "verifiers"), "assay_kernels")
    taskset = kernels.KernelTaskset(kernels.KernelConfig(episodes=2, turns=2, formula="kevin"))
    tasks = list(taskset)
    assert [task.data.seed for task in tasks] == [0, 1]
    assert tasks[0].data.system_prompt and "torch.softmax" in tasks[0].data.prompt
    source = (ROOT / "kernels" / "softmax" / "off_by_one.cpp").read_text()
    wrong = f"```cpp\n{source}```"

    async def play():
        environment = kernels.KernelEnv(taskset)
        await environment.start()
        try:
            for player in (full := Player(wrong, "no code", wrong)), (cut := Player(wrong)):
                await environment.run(tasks[0], types.SimpleNamespace(player=player))
            ask = environment.ask
            await fails(environment, ask, {"failure": "the worker was killed"}, "was killed")
            await fails(environment, ask, {"reward": None, "done": True}, "stayed open")
        finally:
            await environment.stop()
        return full, cut

    async def fails(environment, ask, event, message):
        async def answer(request, **fields):
            return event if request == "step" else await ask(request, **fields)

        environment.ask, player = answer, Player(wrong)
        with pytest.raises(RuntimeError, match=message):
            await environment.run(tasks[0], types.SimpleNamespace(player=player))
        assert player.rewards == {}

    full, cut = asyncio.run(play())
    assert full.rewards == cut.rewards == {"best_reward": 0}
    # The task's prompt opens the exchange; an episode of two turns asks for two answers.
    assert full.told[0] is None and "only the last column" in full.told[1]
    assert len(full.told) == len(cut.told) == 2 and full.answers == [wrong]
