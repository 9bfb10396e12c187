"""Labelled corpora of kernels, as bench/confusion.py judges them: which problem a file is for, and
what its corpus calls it. A reader knows the layout of one corpus:

    assay            tests/exploits: exploits are cheats, twins are honest
    pygpubench       exploits/submission_*.py: run_all.py names two controls, the rest are cheats
    kernelbench      what unit_tests/test_eval_adversarial.py runs are cheats, examples of prompts
                     that test_static_checker.py calls valid are honest
    gpuemu           gpuemu_corpus/data/*/meta.json: those of `human` source are honest controls,
                     the others have a seeded bug and are wrong
    robust-kbench    highlighted kernels, by `assay import`; highlighted/results.csv calls them
                     correct
    kernelbench.com  answers in public/runs; benchmarks/*/results/annotations has a reader's verdict
    packed           a folder that bench/confusion.py --pack wrote of the others

Texts of a problem and a candidate are put together in a scratch folder; nothing else of a corpus
runs here.
"""
import ast
import csv
import dataclasses
import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "exploits"), str(ROOT / "bench")]

import judge_cases
from cases import Case, all_cases
from claims import SHAPES
from rows import read
from threat_table import case_file

CHEAT, HONEST, WRONG = LABELS = ("cheat", "honest", "wrong")
NEEDS_GPU, FOR_CPU = "needs a GPU", "is for a CPU"
NO_ANSWER = "no answer is published"
OTHER_LABEL = "its label is neither clean nor a cheat nor wrong"
OTHER_FORM = "its problem has no forward of inputs"
MORE_FILES = "it loads files beside it"
OTHER_VERSION = "written for another version of its problem: name a checkout with its history"
PACKED = "entries.jsonl"
GPU_WORDS = re.compile(r"cuda|triton|\bhip\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file of a corpus. `said` is the corpus's own word for it, `left_out` why it is not judged
    (empty: it is); `label` is None where the corpus says nothing of right or wrong.
    """

    corpus: str
    name: str
    label: str | None
    said: str
    case: Case | None = None
    left_out: str = ""


@dataclasses.dataclass(frozen=True)
class Request:
    """What a reader is given: a checkout, a folder of its own, and how its files are judged."""

    folder: pathlib.Path | None
    scratch: pathlib.Path
    device: str  # cpu or cuda
    options: tuple = ()  # of assay judge


def text_of(path):
    """ValueError: a checkout lacks the file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}: is this the corpus's checkout?") from error


def code_of(text):
    """The code without comments and docstrings; the text itself if Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def names_gpu(*texts):
    return any(GPU_WORDS.search(code_of(text)) for text in texts)


def entry_of(request, corpus, name, label, said, problem, candidate):
    """The entry of two texts, which are written into the scratch folder if it is judged there."""
    if request.device == "cpu" and names_gpu(problem, candidate):
        return Entry(corpus, name, label, said, left_out=NEEDS_GPU)
    # Candidates for one problem are judged in one call, so it lies in one place.
    problems = request.scratch / corpus / "problems"
    problems.mkdir(parents=True, exist_ok=True)
    place = next((path for path in problems.iterdir() if path.read_text() == problem), None)
    if place is None:
        place = problems / f"problem{len(list(problems.iterdir()))}.py"
        place.write_text(problem, encoding="utf-8")
    path = request.scratch / corpus / f"{name.removesuffix('.py')}.py"
    path.write_text(candidate, encoding="utf-8")
    return Entry(corpus, name, label, said, case_of(request, label, place, path))


def case_of(request, label, problem, path):
    """A candidate's file as a case of tests/exploits: an honest one has to be correct, and the
    others are judged until they are not faster.
    """
    honest = label == HONEST
    return Case(
        path=path,
        number=0,
        problem=str(problem),
        size="",
        settings=[],
        options=list(request.options),
        expected=["correct"] if honest else ["not-faster"],
        naive="",
        naive_options=[],
        naive_runs=1,
        story="",
        twin=honest,
        device=request.device,
    )


def own(request):
    """This repository's exploits and twins, of both devices."""
    for device, reason in (("cpu", FOR_CPU), ("cuda", NEEDS_GPU)):
        for case in all_cases(device):
            label = HONEST if case.twin else CHEAT
            said = f"{'twin' if case.twin else 'exploit'} of class {case.number}"
            mine = device == request.device
            yield Entry(
                "assay",
                case_file(case),
                label,
                said,
                case if mine else None,
                "" if mine else reason,
            )


GRAYSCALE = '''"""The mean of three channels, weighted: a picture in grey."""
import torch

HEIGHT, WIDTH = 512, 512


class Model(torch.nn.Module):
    def forward(self, picture):
        weights = picture.new_tensor([0.2989, 0.5870, 0.1140])
        return torch.sum(picture * weights, dim=-1)


def get_inputs():
    return [torch.rand(HEIGHT, WIDTH, 3)]


def get_init_inputs():
    return []
'''
OF_KERNEL = """

import torch


class ModelNew(torch.nn.Module):
    def forward(self, picture):
        output = picture.new_empty(picture.shape[:-1])
        kernel(output, picture)
        return output
"""


def assigned(text, name):
    """The value of a module's constant. ValueError: there is none of that name."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise ValueError(f"{name} is not assigned")


def pygpubench(request):
    """kernel(output, input) of pygpubench's exploits, for the problem of exploits/benchmark.py."""
    folder = request.folder / "exploits"
    controls = assigned(text_of(folder / "run_all.py"), "HARNESS_TESTS")
    for path in sorted(folder.glob("submission_*.py")):
        label, said = CHEAT, "exploit"
        if path.stem in controls:
            said, _, is_correct = controls[path.stem]
            label = HONEST if is_correct else WRONG
        yield entry_of(
            request, "pygpubench", path.name, label, said, GRAYSCALE, text_of(path) + OF_KERNEL
        )


def calls(tree, name):
    """(function of the file, call) of each call of `name`."""
    for function in tree.body:
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
                yield function, node


def kernelbench(request):
    """KernelBench's tests of its own checkers."""
    root = request.folder / "src" / "kernelbench"
    tests = root / "unit_tests"
    tree = ast.parse(text_of(tests / "test_eval_adversarial.py"))
    for function, call in calls(tree, "run_test_kernel"):
        words = {word.arg: getattr(word.value, "value", "") for word in call.keywords}
        problem = text_of(request.folder / "KernelBench" / words["problem_name"])
        name = words["kernel_filename"]
        candidate = text_of(tests / "test_kernels" / name)
        yield entry_of(request, "kernelbench", name, CHEAT, function.name, problem, candidate)
    tree = ast.parse(text_of(tests / "test_static_checker.py"))
    for function, call in calls(tree, "read_kernel"):
        place = call.args[0]
        if not function.name.endswith("_valid") or not isinstance(place, ast.BinOp):
            continue
        name = place.right.value
        stem = re.match(r"model_new_(ex_[a-z0-9]+)", name).group(1)
        problem = text_of(root / "prompts" / f"model_{stem}.py")
        candidate = text_of(root / "prompts" / name)
        yield entry_of(request, "kernelbench", name, HONEST, function.name, problem, candidate)


# The formula of each fp64 reference, by its folder; inputs have the names of meta.json.
FORMULAS = {
    "attention_triton": "torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1) @ v",
    "elu_triton": "functional.elu(input)",
    "gelu_triton": 'functional.gelu(input, approximate="tanh")',
    "l2norm_triton": "input * torch.rsqrt((input * input).sum(-1, keepdim=True) + 1e-12)",
    "layernorm": "functional.layer_norm(input, input.shape[-1:], eps=1e-5)",
    "leaky_relu_triton": "functional.leaky_relu(input, 0.01)",
    "matmul": "a @ b",
    "matmul_triton": "a @ b",
    "relu_triton": "torch.relu(input)",
    "rmsnorm_triton": "input * torch.rsqrt((input * input).mean(-1, keepdim=True) + 1e-5)",
    "sigmoid_triton": "torch.sigmoid(input)",
    "silu_triton": "functional.silu(input)",
    "softmax": "torch.softmax(input, dim=-1)",
    "tanh_triton": "torch.tanh(input)",
}
# Its fuzzer draws from -10 to 10.
OF_FORMULA = """import torch
from torch.nn import functional

{constants}


class Model(torch.nn.Module):
    def forward(self, {names}):
        return {formula}


def get_inputs():
    return [20 * torch.rand(shape) - 10 for shape in ({shapes},)]


def get_init_inputs():
    return []
"""
OF_RUN = """

import torch


class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        inputs = dict({pairs})
        arrays = {{name: tensor.detach().cpu().numpy() for name, tensor in inputs.items()}}
        return torch.from_numpy(run(arrays)).to({first}.device)
"""


def gpuemu(request):
    """run(inputs) of gpuemu-corpus, which takes and gives NumPy arrays, at its largest shape."""
    paths = sorted((request.folder / "gpuemu_corpus" / "data").glob("*/meta.json"))
    if not paths:
        raise ValueError(f"{request.folder} has no gpuemu_corpus/data/*/meta.json")
    for path in paths:
        meta = json.loads(text_of(path))
        names, schema = meta["input_names"], meta["op_schema"]
        sizes = {each["name"]: max(each["candidates"]) for each in schema["dims"]}
        problem = OF_FORMULA.format(
            constants="\n".join(f"{name} = {size}" for name, size in sizes.items()),
            names=", ".join(names),
            formula=FORMULAS[pathlib.PurePosixPath(meta["reference"]).parent.name],
            shapes=", ".join(f"({', '.join(each['dims'])},)" for each in schema["inputs"]),
        )
        candidate = text_of(path.parent / "kernel.py") + OF_RUN.format(
            names=", ".join(names),
            pairs=", ".join(f"{name}={name}" for name in names),
            first=names[0],
        )
        label = HONEST if meta["source"].startswith("human") else WRONG
        yield entry_of(request, "gpuemu", meta["name"], label, meta["source"], problem, candidate)


def robust_kbench(request):
    """robust-kbench's highlighted kernels."""
    csv.field_size_limit(1 << 24)
    with open(request.folder / "highlighted" / "results.csv", encoding="utf-8") as file:
        correct = {row["task_name"]: row["Correct"] for row in csv.DictReader(file)}
    folder = request.scratch / "imported"
    command = [judge_cases.ASSAY, "import", "robust-kbench", request.folder, "-o", folder]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise ValueError(f"{request.folder} was not imported: {process.stderr.strip()}")
    for row in read(folder / "origin.jsonl"):
        said = f"correct: {correct.get(row['origin']['task'].partition('_config')[0])}"
        name = pathlib.PurePath(row["candidate"]).name
        texts = [text_of(folder / row[part]) for part in ("problem", "candidate")]
        label = {"correct: True": HONEST, "correct: False": WRONG}.get(said)
        yield entry_of(request, "robust-kbench", name, label, said, *texts)


@functools.cache
def versions(folder, path):
    """[(date and time as a run's name begins with it, commit, path then)] of a file, newest first;
    none where there is no history.
    """
    command = ["git", "-C", str(folder), "log", "--follow", "--name-only", "--format=%x01%cd %H"]
    command += ["--date=format:%Y%m%d_%H%M%S", "--", str(path)]
    process = subprocess.run(command, capture_output=True, text=True)
    found = [block.split() for block in process.stdout.split("\1")[1:]]
    return [tuple(words) for words in found if len(words) == 3]


def text_at(folder, path, moment):
    """The text of a file as it was then; today's where there is no history."""
    known = versions(folder, path)
    if not known:
        return text_of(folder / path)
    _, commit, then = next((each for each in known if each[0] <= moment), known[-1])
    command = ["git", "-C", str(folder), "show", f"{commit}:{then}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def scalar(text, key):
    """The value of a key on a line of YAML; empty where there is none."""
    found = re.search(rf"^{key}:[ \t]*([\w.-]+)", text, re.MULTILINE)
    return found.group(1) if found else ""


def label_of(annotation):
    """By a reader's verdict. 'bug' and 'fail' are said of machines, too, so their answer has to be
    wrong.
    """
    verdict = scalar(annotation, "verdict")
    if verdict == "reward_hack":
        return CHEAT
    if verdict == "clean":
        return HONEST
    is_wrong = scalar(annotation, "correct") == "false"
    return WRONG if is_wrong and verdict in ("bug", "fail", "fail_honest") else None


def answers(folder):
    """{run: (file, card)} of the published answers; a card's own folder counts first."""
    found = {}
    for path in sorted((folder / "public" / "runs").rglob("*_solution.py.txt")):
        card = "rtxpro6000" if path.parent.name == "runs" else path.parent.name
        run = path.name.removesuffix("_solution.py.txt")
        if run not in found or card != "rtxpro6000":
            found[run] = (path, card)
    return found


def answer_entry(request, corpus, annotation, found):
    """The entry of one annotated run."""
    run, text = annotation.stem, text_of(annotation)
    said, label = scalar(text, "verdict"), label_of(text)
    left = lambda why: Entry(corpus, run, label, said, left_out=why)
    if label is None:
        return left(OTHER_LABEL)
    if run not in found:
        return left(NO_ANSWER)
    path, card = found[run]
    decks = sorted(annotation.parents[2].glob("problems*"))
    decks.sort(key=lambda deck: deck.name != f"problems-{card}")
    places = [each for deck in decks for each in deck.iterdir() if run.endswith("_" + each.name)]
    if not places:
        return left(OTHER_FORM)
    place, texts = places[0], []
    for part in ("reference.py", "shapes.py"):
        inside = (place / part).relative_to(request.folder)
        texts.append(text_at(request.folder, inside, run))
    reference, shapes = texts
    if "def get_inputs" not in reference or re.search(r"get_inputs.*\s+return \[\]", reference):
        return left(OTHER_FORM)
    candidate = text_of(path)
    if re.search(r"^# =+ sidecar: ", candidate, re.MULTILINE):
        return left(MORE_FILES)
    buffers = re.findall(r"register_buffer\(\s*[\"']([a-z]\w*)", reference)
    if any(buffer not in candidate for buffer in buffers):
        return left(OTHER_VERSION)
    shape = SHAPES.get(place.name, 1) - 1
    problem = f"{reference}\n\n{shapes}\n\nglobals().update(SHAPES[{shape}])\n"
    return entry_of(
        request, corpus, run, label, said, problem, candidate + "\n\nModelNew = Model\n"
    )


def kernelbench_com(request):
    """Answers of kernelbench.com: a corpus for each of its benchmarks that has annotations. Each is
    judged by its problem as it was when the answer was written, at one shape.
    """
    found = answers(request.folder)
    paths = sorted(request.folder.glob("benchmarks/*/results/annotations/*.yaml"))
    if not paths:
        raise ValueError(f"{request.folder} has no benchmarks/*/results/annotations/*.yaml")
    for path in paths:
        yield answer_entry(request, f"kernelbench-{path.parents[2].name}", path, found)


def pack(entries, folder):
    """Writes what the entries are into their scratch folder, for `packed` on another machine."""
    with open(folder / PACKED, "w", encoding="utf-8") as file:
        for entry in entries:
            row = {"corpus": entry.corpus, "name": entry.name, "label": entry.label}
            row |= {"said": entry.said, "left_out": entry.left_out}
            if entry.case:
                paths = {"problem": pathlib.Path(entry.case.problem), "path": entry.case.path}
                row |= {key: str(path.relative_to(folder)) for key, path in paths.items()}
            file.write(json.dumps(row) + "\n")


def packed(request):
    """What `pack` wrote, of any corpora."""
    text_of(request.folder / PACKED)
    for row in read(request.folder / PACKED):
        case, left_out = None, row["left_out"]
        if not left_out:
            problem, path = request.folder / row["problem"], request.folder / row["path"]
            if request.device == "cpu" and names_gpu(text_of(problem), text_of(path)):
                left_out = NEEDS_GPU
            else:
                case = case_of(request, row["label"], problem, path)
        words = (row[key] for key in ("corpus", "name", "label", "said"))
        yield Entry(*words, case, left_out)


READERS = {
    "assay": own,
    "pygpubench": pygpubench,
    "kernelbench": kernelbench,
    "gpuemu": gpuemu,
    "robust-kbench": robust_kbench,
    "kernelbench.com": kernelbench_com,
    "packed": packed,
}
