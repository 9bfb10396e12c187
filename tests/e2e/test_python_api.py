"""import assay, with the real program: verdicts, trouble, the wheel's way of starting."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from conftest import ASSAY, ROOT, SOFTMAX_BODY

sys.path.insert(0, str(ROOT / "python"))  # what the wheel installs

import assay as api  # noqa: E402

KERNELS = ROOT / "kernels" / "softmax"
ENDLESS = "for (volatile int i = 0;; i = i + 1) {}"


def source(body=SOFTMAX_BODY):
    head = "#include <assay/kernel.h>\n#include <cmath>\n"
    arguments = "assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y"
    return f"{head}ASSAY_KERNEL({arguments}) {{{body}}}\n"


# Of tests that look for what is left: before those that hold a session open.
INTERRUPTED = """
import assay, os, signal, sys
def interrupt(event):
    if getattr(event, "stage", "") == "correctness":
        os.kill(os.getpid(), signal.SIGINT)
session = assay.Session(program=sys.argv[1], size="tiny", threads=1)
try:
    session.check("softmax", sys.argv[2], on_event=interrupt, timeout_s=600)
except KeyboardInterrupt:
    print("interrupted")
print(session.check("softmax", sys.argv[3])[0].outcome)
print(session.worker_pid, flush=True)
if len(sys.argv) > 4:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", [[], ["killed"]])
def test_nothing_is_left_after_ctrl_c_and_the_end_of_the_client(tmp_path, leftovers, end):
    home = {"XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    variables = {**os.environ, **home, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", INTERRUPTED, str(ASSAY), source(ENDLESS), source(), *end]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    interrupted, outcome, _ = ran.stdout.split()
    assert (interrupted, outcome) == ("interrupted", "correct"), ran
    assert not leftovers()


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    home = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        patch.setenv("XDG_CACHE_HOME", home)
        with api.Session(program=ASSAY, size="tiny", threads=1, budget_s=4) as made:
            yield made


def test_candidates_of_each_kind_and_all_about_their_verdicts(session):
    events = []
    candidates = [KERNELS / "fused.cpp", source(), api.Source(source("nonsense;"), "typo.cpp")]
    verdicts = session.check("softmax", candidates, on_event=events.append)
    assert [each.outcome for each in verdicts] == ["correct", "correct", "build_failed"]
    assert "typo.cpp" in verdicts[2].candidate and verdicts[2].line
    assert {type(each) for each in events} == {api.Progress, api.Judged}
    assert session.describe("softmax").signature[0] == "input x float32[64, 1024]"
    wrong, timed = session.judge("softmax", [KERNELS / "off_by_one.cpp", source()])
    assert wrong.outcome is api.Outcome.WRONG and wrong.score == 0
    assert wrong.correctness.first_mismatch.index[-1] == 1023
    assert timed.correct and timed.speed.pairs > 0 and timed.score > 0
    assert "<svg" in timed._repr_html_()
    scored = api.score([wrong, timed], program=ASSAY)
    assert scored["schema"] == "assay.score/1"
    # The same problem as a source, and what nobody can judge.
    problem = (ROOT / "problems" / "level1" / "gelu.py").read_text()
    text = "import torch\nclass ModelNew(torch.nn.Module):\n    forward = lambda self, x: x\n"
    [copied] = session.check(problem, text, size=None)
    assert copied.outcome == "wrong"
    with pytest.raises(api.UsageError, match="did you mean"):
        session.check("sofmax", source())
    with pytest.raises(api.MachineError) as raised:
        session.check("softmax", source(), python="/bin/false")
    assert raised.value.exit_code == 8


def test_a_cancelled_request_and_a_killed_worker(session):
    with pytest.raises(api.TimedOut):
        session.check("softmax", source(ENDLESS), limit_s=2.5, timeout_s=600)
    killed = []

    def kill(event):
        if not killed and isinstance(event, api.Progress):
            killed.append(session.worker_pid)
            os.kill(killed[0], signal.SIGKILL)

    with pytest.warns(api.WorkerTrouble, match="signal 9"):
        [verdict] = session.check("softmax", source(), on_event=kill)
    assert verdict.outcome == "correct" and session.worker_pid != killed[0]


@pytest.fixture
def open_folder():
    """A folder that sandboxes may look below, whoever starts them."""
    with tempfile.TemporaryDirectory(prefix="assay-wheel-") as made:
        os.chmod(made, 0o755)
        yield pathlib.Path(made)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("patchelf") is None, reason="needs patchelf")
def test_a_wheel_is_installed_and_judges_by_its_own_program(open_folder):
    wheel, environment = open_folder / "wheel", open_folder / "environment"
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "wheel", wheel],
        env={**os.environ, "ASSAY_BUILT": "yes"}, capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", environment], check=True
    )
    [file] = wheel.glob("*.whl")
    pip = [environment / "bin" / "pip", "install", "--no-index", "--quiet", file]
    subprocess.run(pip, check=True)
    home = {"XDG_STATE_HOME": str(open_folder), "XDG_CACHE_HOME": str(open_folder)}
    dropped = ("ASSAY_SUPPORT", "ASSAY_BINARY", "PYTHONPATH")
    variables = {name: os.environ[name] for name in os.environ if name not in dropped} | home
    script = (
        "import assay, sys; [verdict] = assay.judge('softmax', sys.argv[1], size='tiny',"
        " threads=1, budget_s=8); print(verdict.correct, verdict.raw['toolchain']['python'])"
    )
    python = environment / "bin" / "python"
    ran = subprocess.run(
        [python, "-c", script, source()],
        env=variables, cwd=open_folder, capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert ran.stdout.startswith("True 3."), ran
    version = subprocess.run(
        [environment / "bin" / "assay", "--version"], env=variables, capture_output=True, text=True
    )
    assert version.stdout.startswith("assay "), version
