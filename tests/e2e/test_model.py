"""assay model: kernels swapped into a whole model."""
import pytest

from conftest import GOOD, ROOT, USAGE, fits

MODEL = ROOT / "kernels" / "model"
TINY = [
    f"--set={setting}"
    for setting in (
        "LAYERS=2",
        "VOCABULARY=64",
        "CONTEXT=8",
        "HIDDEN=64",
        "HEADS=4",
        "KV_HEADS=2",
        "HEAD_DIM=16",
        "FEED_FORWARD=32",
    )
]


def test_decoding_is_composed_without_a_gpu(assay, tmp_path):
    run = assay(
        "model", MODEL / "decode.toml", "--compose-only", "--write", tmp_path, "-q", *TINY
    )
    assert run.code == GOOD, run
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files[0] == "00_plain.cu" and len(files) == 6, files
    text = (tmp_path / files[-1]).read_text()
    assert text.count("//! launch swiglu_0_swiglu") == 2
    assert text.count("//! launch logits_0_qkv") == 1


def test_what_is_wrong_is_named(assay, tmp_path):
    run = assay("model", MODEL / "cpu.toml", "--only", "attention")
    assert run.code == USAGE and "it has rms_norm, attend, swiglu" in run.err, run
    run = assay("model", tmp_path, "--device", "cpu")
    assert run.code == USAGE and "has no manifest of a model for cpu" in run.err, run
    text = (MODEL / "cpu.toml").read_text().replace('"../', f'"{MODEL.parent}/')
    (tmp_path / "cpu.toml").write_text(text.replace("1e-6", "1e-7"))
    run = assay("model", tmp_path)
    assert run.code == USAGE and "has no '1e-7' that could be changed" in run.err, run


@pytest.mark.thorough
def test_a_model_on_a_cpu_is_judged_end_to_end(assay):
    run = assay(
        "model",
        MODEL,
        "--device=cpu",
        "--size=tiny",
        "--only=rms_norm,swiglu",
        "--rounds=4",
        "--correctness-only",
        "--json",
        "-q",
        timeout=600,
    )
    assert run.code == GOOD, run
    document = run.verdict
    fits(document, "model")
    assert [line["outcome"] for line in document["swaps"]] == ["correct", "correct"]
    assert [error["at"] for error in document["errors"]] == ["logits", "layer 1", "layer 2"]
    assert all(error["swapped"] < 10 * error["reference"] for error in document["errors"])
    assert document["base_ns"] > 0 and document["tokens"] == 16


@pytest.mark.thorough
def test_16_layers_in_bfloat16_can_be_judged(assay, tmp_path):
    source = (MODEL / "model.py").read_text().replace("class Model(", "class ModelNew(")
    call = "            x = layer("
    assert source.count(call) == 1
    lacks = "            if number == 2:\n                layer.attention = lambda *_: 0\n" + call
    candidates = {"same.py": source, "lacks.py": source.replace(call, lacks)}
    for name, text in candidates.items():
        (tmp_path / name).write_text(text)
    settings = (
        "LAYERS=16 HIDDEN=128 HEADS=4 KV_HEADS=2 HEAD_DIM=32 FEED_FORWARD=256 VOCABULARY=1024 "
        "CONTEXT=8 BITS=16"
    )
    options = [word for setting in settings.split() for word in ("--set", setting)]
    options += ["--correctness-only", "--threads", "1"]
    files = [tmp_path / name for name in candidates]
    run = assay.judge(MODEL / "model.py", *files, *options, timeout=600)
    assert [verdict["outcome"] for verdict in run.verdict] == ["correct", "wrong"], run
