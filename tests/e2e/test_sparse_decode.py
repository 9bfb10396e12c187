"""The rungs of kernels/sparse-decode for a GPU are right: they are emulated, thread by thread."""
import importlib.util
import sys

import pytest

from conftest import ROOT

torch = pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "tests" / "emulated"))
import rungs  # noqa: E402

FOLDER = ROOT / "kernels" / "sparse-decode"
RUNGS = sorted(path.name for path in FOLDER.glob("*.cu"))
INPUTS = "q cache index_q index_weights index_keys page_table lengths".split()
# Lengths of 128, 3 and 0 tokens, and with one head of the indexer many equal scores.
SMALL = {"BATCH": 3, "LONGEST": 128, "STEP": 125, "HEADS": 3, "INDEX_HEADS": 1, "TOP": 70}
# Several tiles of chosen rows, several groups of heads, and several digits.
LARGE = {"BATCH": 9, "LONGEST": 900, "STEP": 110, "HEADS": 33, "INDEX_HEADS": 64, "TOP": 700}


def problem(constants):
    spec = importlib.util.spec_from_file_location("sparse_decode_problem", FOLDER / "problem.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in constants.items():
        assert hasattr(module, name)
        setattr(module, name, value)
    return module


def emulate(rung, folder, constants, seed):
    """Largest error of the results, that of the reference, and whether the choice is the same."""
    module = problem(constants)
    torch.manual_seed(seed)
    model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
    if constants is LARGE:
        inputs[2:5] = [torch.randint(-63, 64, x.shape).to(torch.int8) for x in inputs[2:5]]
    want, chosen = model(*inputs)
    exact = model(inputs[0].double(), inputs[1].double(), *inputs[2:])[0]
    tensors = dict(zip(INPUTS, inputs, strict=True))
    tensors["out"], tensors["out1"] = torch.full_like(want, torch.nan), torch.full_like(chosen, 77)
    rungs.run(rung, tensors, folder, seed)
    errors = [float((out.double() - exact).abs().max()) for out in (tensors["out"], want)]
    return *errors, torch.equal(tensors["out1"], chosen)


def test_every_rung_is_emulated():
    assert len(RUNGS) == 7


@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_is_right(rung, tmp_path):
    error, of_reference, same = emulate(FOLDER / rung, tmp_path, SMALL, seed=len(rung))
    assert same and error < 2 * of_reference + 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_is_right_at_many_tiles_groups_and_digits(rung, tmp_path):
    error, of_reference, same = emulate(FOLDER / rung, tmp_path, LARGE, seed=5)
    assert same and error < 2 * of_reference + 0.01


@pytest.mark.parametrize(
    "text, instead",
    (
        ("WaitCopies<STAGES - 2>();", ""),
        ("my_equal < cut.equal", "my_equal < cut.equal - 1"),
        ("  ClusterBarrier();\n}\n", "}\n"),
    ),
    ids=("copies", "ties", "barrier"),
)
def test_a_fault_shows(text, instead, tmp_path):
    source = (FOLDER / "06_cluster.cu").read_text()
    assert text in source
    broken = tmp_path / "broken.cu"
    broken.write_text(source.replace(text, instead))
    try:
        error, of_reference, same = emulate(broken, tmp_path, SMALL, seed=3)
    except RuntimeError:
        return  # it read what is no row
    assert not same or not error < 2 * of_reference + 0.01
