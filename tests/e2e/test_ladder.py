"""assay ladder: rungs good and bad, rows, resume, tables and charts; the ladders under kernels/."""
import json
import os
import pathlib
import shutil
import signal
import tempfile
import time
import xml.etree.ElementTree

import pytest

from conftest import DIED, GOOD, INTERRUPTED, ROOT, SOFTMAX_BODY, USAGE

BUDGET = 9  # the exit code of minutes that ended
KERNELS = ROOT / "kernels"
HEAD = 'title = "Softmax in steps"\nproblem = "softmax"\ndevice = "cpu"\nbound = "memory"\n'
SIZES = "[[size]]\nset = {ROWS = 64, COLUMNS = 32}\n[[size]]\nset = {ROWS = 7, COLUMNS = 33}\n"
GATE_1 = ("--correctness-only", "--threads", "1")


def source(body):
    head = "#include <assay/kernel.h>\n#include <cmath>\n"
    arguments = "assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y"
    return f"{head}ASSAY_KERNEL({arguments}) {{{body}}}\n"


GOOD_RUNG = source(SOFTMAX_BODY)
BAD_RUNGS = {
    "wrong": source(SOFTMAX_BODY + "y.data()[3] = 2;"),
    "crashes": source("*(volatile int*)16 = 1;"),
    "broken": "nonsense\n",
}


@pytest.fixture
def ladder(tmp_path):
    """ladder(NAME=SOURCE...) writes a ladder of rungs in that order, and gives its folder."""

    def write(**rungs):
        folder = tmp_path / "steps"
        folder.mkdir(exist_ok=True)
        text = HEAD + SIZES
        for number, (name, content) in enumerate(rungs.items(), start=1):
            file = f"{number:02}_{name}.cpp"
            (folder / file).write_text(content)
            text += f'[[rung]]\nfile = "{file}"\nidea = "{name}"\n'
            text += "predicted_percent_of_library = 50\n"
        (folder / "ladder.toml").write_text(text)
        return folder

    return write


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def outcomes(path):
    return [row["outcome"] for row in rows(path)]


def test_bad_rungs_are_rows_and_none_is_judged_twice(assay, ladder, tmp_path):
    folder = ladder(good=GOOD_RUNG, **BAD_RUNGS, again=GOOD_RUNG + "\n")
    out = tmp_path / "rows.jsonl"
    run = assay("ladder", folder, "--out", out, *GATE_1)
    assert run.code == DIED, run
    assert outcomes(out) == ["correct", "wrong", "crashed", "build_failed", "correct"], run
    first = rows(out)[0]
    assert list(first)[:4] == ["judge", "date", "ladder", "schema"] and "samples" not in first
    assert first["ladder"] == "steps" and first["problem"]["set"] == {"ROWS": "64", "COLUMNS": "32"}
    assert "softmax in steps" in run.out.lower() and "05_again" in run.out, run
    # A changed rung alone is judged by the next call; a torn row is dropped.
    (folder / "03_crashes.cpp").write_text(GOOD_RUNG + "// mended\n")
    out.write_text(out.read_text() + '{"judge": "abc')
    run = assay("ladder", folder, "--out", out, *GATE_1)
    assert run.code == 4 and "was torn" in run.err, run
    assert len(rows(out)) == 6 and run.out.count("(recorded)") == 4, run
    # Another size is another row; --again judges in any case.
    only = ("ladder", folder, "--out", out, "--only", "01,05:", *GATE_1)
    run = assay(*only, "--all-sizes")
    assert run.code == GOOD and len(rows(out)) == 8 and run.out.count("(recorded)") == 2, run
    run = assay(*only, "--again")
    assert run.code == GOOD and len(rows(out)) == 10, run
    run = assay(*only, "--set", "ROWS=5")
    assert run.code == GOOD and rows(out)[-1]["problem"]["set"]["ROWS"] == "5", run


def test_speeds_stand_beside_predictions_and_in_the_chart(assay, ladder, tmp_path):
    folder, chart = ladder(good=GOOD_RUNG), tmp_path / "chart.svg"
    run = assay("ladder", folder, "--chart", chart, "--budget", "3", "--threads", "1")
    assert run.code == GOOD, run
    assert "% of eager" in run.out and "as predicted" in run.out, run
    root = xml.etree.ElementTree.parse(chart).getroot()
    assert "01_good" in "".join(root.itertext())


def test_killed_interrupted_and_out_of_time_keep_what_stands(assay, ladder, tmp_path):
    spins = source("for (volatile long i = 0; i < 40000000; ++i) {}" + SOFTMAX_BODY)
    rungs = {f"step{i}": spins + f"// {i}\n" for i in range(6)}
    folder, out = ladder(**rungs), tmp_path / "rows.jsonl"
    arguments = ("ladder", folder, "--out", out, *GATE_1)
    for number, (sent, code) in enumerate(
        ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, INTERRUPTED)), start=1
    ):
        process = assay.start(*arguments)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not out.exists() or len(rows(out)) < number):
            time.sleep(0.02)
        os.killpg(process.pid, sent)
        process.communicate(timeout=60)
        assert process.returncode == code
        assert number <= len(rows(out)) < 6
    before = len(rows(out))
    run = assay(*arguments, "--minutes", "0.0001")
    assert run.code == BUDGET and "left" in run.err, run
    after = len(rows(out))
    assert before <= after <= before + 1, "the rung at work is judged to its end"
    run = assay(*arguments, "--minutes", "5")
    assert run.code == GOOD and len(rows(out)) == 6, run
    assert run.out.count("(recorded)") == after


def test_requests_that_make_no_sense_are_refused(assay, ladder, tmp_path):
    folder = ladder(good=GOOD_RUNG)
    for arguments, said in (
        ((tmp_path / "none",), "name a folder with a ladder.toml"),
        ((folder, "--only", "7"), "its numbers are 1 to 1"),
        ((folder, "--set", "ROWS"), "NAME=VALUE"),
        ((folder, "--device", "cuda"), "has no ladder for cuda"),
        ((folder, "--recorded"), "results: is missing"),
    ):
        run = assay("ladder", *arguments)
        assert run.code == USAGE and said in run.err, run
    text = (folder / "ladder.toml").read_text()
    (folder / "ladder.toml").write_text(text.replace("idea", "ideal"))
    run = assay("ladder", folder)
    assert run.code == USAGE and "ladder.toml line" in run.err and "did you mean" in run.err, run


def test_every_readme_agrees_with_its_raw_results(assay):
    run = assay("ladder", KERNELS, "--check")
    assert run.code == GOOD and not run.out, run


def test_a_readme_that_differs_is_named_and_written_anew(assay, tmp_path):
    folder = tmp_path / "vector-add"
    shutil.copytree(KERNELS / "first-steps" / "vector-add", folder)
    results = ROOT / "bench" / "results" / "h100" / "ladders.jsonl"
    toml = (folder / "ladder.toml").read_text()
    (folder / "ladder.toml").write_text(f'results = "{os.path.relpath(results, folder)}"\n' + toml)
    readme = folder / "README.md"
    readme.write_text(readme.read_text().replace("**102", "**202"))
    run = assay("ladder", folder, "--check")
    assert run.code == 1 and len(run.out.splitlines()) == 1 and "README.md: differs" in run.out, run
    assert assay("ladder", folder, "--readme").code == GOOD
    assert assay("ladder", folder, "--check").code == GOOD and "**102" in readme.read_text()
    chart = folder / "ladder.svg"
    assert "](ladder.svg)" in readme.read_text() and chart.read_text().startswith("<svg")
    chart.unlink()
    run = assay("ladder", folder, "--check")
    assert run.code == 1 and f"{chart}: differs" in run.out, run
    run = assay("ladder", folder, "--recorded", "--chart", tmp_path / "chart.svg")
    assert run.code == GOOD and "(recorded)" in run.out and (tmp_path / "chart.svg").exists(), run


# Sizes at which every CPU rung is right: tiny ones, and ragged ones whose rows fill no vector.
TINY_AND_RAGGED = {
    "sgemm-cpu": ("ROWS=16 INNER=16 COLUMNS=16", "ROWS=37 INNER=53 COLUMNS=61"),
    "softmax-ladder": ("ROWS=4 COLUMNS=64", "ROWS=7 COLUMNS=333"),
    "layernorm-ladder": (
        "BATCH=2 FEATURES=2 DIM1=4 DIM2=4",
        "BATCH=3 FEATURES=3 DIM1=7 DIM2=11",
    ),
    "rmsnorm-ladder": ("ROWS=4 COLUMNS=64", "ROWS=7 COLUMNS=333"),
    "first-steps/transpose": ("ROWS=16 COLUMNS=16", "ROWS=37 COLUMNS=53"),
    "first-steps/reduction": ("COUNT=64", "COUNT=100003"),
    "conv2d-ladder": (
        "BATCH=1 CHANNELS_IN=1 CHANNELS_OUT=2 HEIGHT=11 WIDTH=11",
        "BATCH=2 CHANNELS_IN=2 CHANNELS_OUT=53 HEIGHT=37 WIDTH=61",
    ),
    "conv2d-relu-maxpool": (
        "BATCH=1 CHANNELS_IN=1 CHANNELS_OUT=2 HEIGHT=15 WIDTH=15",
        "BATCH=2 CHANNELS_IN=2 CHANNELS_OUT=53 HEIGHT=37 WIDTH=61",
    ),
    "flash-attention": (
        "BATCH=1 HEADS=1 LENGTH=4 HEAD_DIM=8",
        "BATCH=2 HEADS=3 LENGTH=77 HEAD_DIM=50 CAUSAL=1",
    ),
    "fp8-gemm": (
        "ROWS=4 INNER_BLOCKS=1 COLUMN_BLOCKS=1",
        "ROWS=7 INNER_BLOCKS=3 COLUMN_BLOCKS=2",
    ),
    "paged-decode": (
        "BATCH=2 LONGEST=16 STEP=12 KV_HEADS=1 GROUP=2 HEAD_DIM=16 PAGE=8",
        "BATCH=3 LONGEST=37 STEP=18 KV_HEADS=2 GROUP=3 HEAD_DIM=20 PAGE=5",
    ),
    "mla-decode": (
        "BATCH=2 LONGEST=16 STEP=12 HEADS=2 LATENT=16 ROPE=8 PAGE=8",
        "BATCH=3 LONGEST=37 STEP=18 HEADS=11 LATENT=50 ROPE=7 PAGE=5",
    ),
    "sparse-decode": (
        "BATCH=2 LONGEST=16 STEP=12 HEADS=2 LATENT=16 ROPE=8 INDEX_HEADS=2 INDEX_DIM=8 TOP=4 "
        "PAGE=8",
        "BATCH=3 LONGEST=91 STEP=38 HEADS=11 LATENT=50 ROPE=7 INDEX_HEADS=3 INDEX_DIM=19 TOP=21 "
        "PAGE=5",
    ),
    "spec-verify": ("BATCH=2 DRAFTED=2 OCTETS=16", "BATCH=5 DRAFTED=3 OCTETS=131"),
    "moe-routing": ("TOKENS=8 EXPERTS=8 TOP=2", "TOKENS=37 EXPERTS=53 TOP=5"),
    "nvfp4-gemv": ("ROWS=4 GROUPS=1", "BATCH=2 ROWS=13 GROUPS=5"),
    "w4a16": ("GROUPS=1 OUTPUTS=4", "ROWS=3 GROUPS=5 OUTPUTS=13"),
}


def test_every_ladder_for_a_cpu_has_its_tiny_and_ragged_sizes():
    found = {
        path.parent.relative_to(KERNELS).as_posix()
        for path in KERNELS.rglob("ladder*.toml")
        if 'device = "cpu"' in path.read_text()
    }
    assert found == set(TINY_AND_RAGGED)


@pytest.mark.parametrize("size", (0, 1), ids=("tiny", "ragged"))
@pytest.mark.parametrize("name", TINY_AND_RAGGED)
def test_every_rung_for_a_cpu_is_correct(assay, tmp_path, name, size):
    constants = TINY_AND_RAGGED[name][size].split()
    settings = [word for constant in constants for word in ("--set", constant)]
    out = tmp_path / "rows.jsonl"
    run = assay("ladder", KERNELS / name, "--device", "cpu", "--out", out, *settings, *GATE_1)
    assert run.code == GOOD and set(outcomes(out)) == {"correct"}, run


# In the form of nvdisasm's listings: a loop of one product, and what comes before it.
LISTING = """\t.section\t.text.product,"ax",@progbits
product:
        /*0000*/                   S2R R3, SR_TID.X ;
.L_x_0:
        /*0010*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0020*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0030*/              @P0  BRA `(.L_x_0) ;
        /*0040*/                   EXIT ;
"""
SASS_RUNG = KERNELS / "hgemm-hopper" / "05_wgmma.cu"


@pytest.fixture
def toolkit():
    """A toolkit whose nvdisasm prints LISTING, where the sandbox's user may look."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        disassembler = pathlib.Path(folder) / "bin" / "nvdisasm"
        disassembler.parent.mkdir()
        disassembler.write_text(f"#!/bin/sh\n[ -s \"$2\" ] && printf %s '{LISTING}'\n")
        disassembler.chmod(0o755)
        os.chmod(folder, 0o755)
        yield folder


def test_a_rungs_hot_loop_is_shown_with_marks(assay, tmp_path, toolkit):
    run = assay("sass", SASS_RUNG, CUDA_HOME=toolkit)
    if run.code == 8 and "NVRTC" in run.err:
        pytest.skip("NVRTC is not there")
    assert run.code == GOOD, run
    said = "product: 3 of 5 instructions are its hot loop, the one with the most 'multiply'"
    assert said in run.out, run
    marks = [line.split()[1] for line in run.out.splitlines() if line.startswith("   00")]
    assert marks == ["multiply", "wait", "@P0"], run
    run = assay("sass", SASS_RUNG, "--whole", CUDA_HOME=toolkit)
    assert run.code == GOOD and "product: 5 instructions" in run.out and "EXIT" in run.out, run
    broken = tmp_path / "broken.cu"
    broken.write_text("//! launch copy grid=(1) block=(32) args=(x, out)\nnonsense\n")
    run = assay("sass", broken, "--problem", "softmax", "--size", "tiny", CUDA_HOME=toolkit)
    assert run.code == 4 and 'broken.cu does not build: ' in run.err, run
    assert 'identifier "copy" is undefined' in run.err, run


def test_where_no_disassembler_is_one_line_says_how_to_get_it(assay):
    run = assay("sass", SASS_RUNG)
    if run.code == GOOD:
        pytest.skip("nvdisasm is there")
    assert run.code == 8 and len(run.err.splitlines()) == 1, run
    assert "there is no nvdisasm" in run.err and "pip install nvidia-cuda-nvdisasm" in run.err, run


def test_what_has_no_machine_code_of_its_own_is_refused(assay, write):
    kernel = "//! launch copy grid=(1) block=(32) args=(x, out)\n"
    for arguments, said in (
        ((write("alone.cu", kernel),), "is no rung of a ladder in its folder: name its problem"),
        ((write("native.cpp", GOOD_RUNG),), "is not in the device form"),
        ((KERNELS / "none.cu",), "none.cu"),
    ):
        run = assay("sass", *arguments)
        assert run.code == USAGE and said in run.err, run
