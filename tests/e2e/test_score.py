"""assay score on verdict files: known scores, and each kind of input that must not be mixed."""

import copy
import hashlib
import json
import xml.etree.ElementTree

import jsonschema
import pytest

from conftest import GOOD, ROOT, USAGE

MACHINE = {
    "cpu": "AMD EPYC 7B13",
    "cores": 2,
    "threads": 1,
    "kernel": "Linux 6.1.0",
    "gpu": None,
    "isolation": "bubblewrap 0.8.0",
    "weak": False,
}
COST = dict.fromkeys(["build_s", "start_s", "fill_s", "timed_s", "overhead_s", "total_s"], 0.5)
SUITE = """
name = "three"
[[problem]]
name = "gelu"
file = "gelu.py"
level = 1
mechanism = "fusion"
[[problem]]
name = "sort"
file = "sort.py"
level = 1
mechanism = "order"
[[problem]]
name = "matmul"
file = "matmul.py"
level = 2
mechanism = "reuse"
"""


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


PAIR = {
    "baseline": "eager",
    "order": "rccr",
    "block_ns": [1] * 4,
    "settle_ns": [0] * 4,
    "charged_ns": [],
    "sm_mhz": [],
    "clock_limits": [],
    "alone": None,
}


def verdict(problem, outcome, speedup=None, candidate="mine.cpp"):
    """A whole verdict on a candidate; what is faster is certified at 0.95 of its speedup."""
    timed = outcome in ("faster", "slower", "tie")
    eager = {
        "time_ns": 4e6,
        "candidate_time_ns": 4e6 / (speedup or 1),
        "speedup": speedup,
        "ci": [speedup, speedup],
        "confidence": 0.99,
        "decision": outcome,
        "smallest_visible": 1.01,
        "certified_speedup": 0.95 * speedup if speedup else None,
        "delta": 0.01,
        "clear_margin": 0.5,
        "disturbed_share": 0.0,
        "pairs": 9,
        "rounds": 8,
        "calls_per_block": 24,
        "launched": None,
        "copies": "nobody",
        "why_unsettled": None,
        "note": None,
    }
    correctness = {
        "passed": timed,
        "calls_checked": 10,
        "error_ratio": 0.5,
        "max_abs_error": 1e-7,
        "precision_class": "float32" if timed else None,
        "required_class": "float32",
        "tolerance": "error-ratio",
        **dict.fromkeys(["first_mismatch", "hint", "mistake", "note"]),
        **dict.fromkeys(["differs_on_special_values", "right_with_weights"]),
        "draws": [],
    }
    speed = {"passed": outcome == "faster", "threshold": 1.0, "headline": "eager", "against": None}
    return {
        "schema": "assay.verdict/1",
        "id": digest(problem + candidate)[:12],
        "created": "2026-11-21T07:00:00Z",
        "outcome": outcome,
        "message": "",
        "problem": {
            "name": problem,
            "path": f"problems/{problem}.py",
            "hash": digest(problem),
            "level": 1,
            "size": "small",
            "set": {"ROWS": "512"},
            "weights": "varied",
            "dtype": "float32",
            "signature": ["input x float32[512]", "output out float32[512]"],
        },
        "candidate": {
            "path": candidate,
            "hash": digest(problem + candidate),
            "form": "native",
            "language": "cpp",
            "trust": "sandboxed",
            "flags": "", "artifact": None,
        },
        "correctness": correctness if timed or outcome == "wrong" else None,
        "speed": {**speed, "baselines": {"eager": eager}} if speedup else None,
        **dict.fromkeys(["cause", "line", "work", "roofline", "libraries"]),
        "kernels": [],
        "bottleneck": None,
        "probe": None,
        "coverage": None,
        "profile": None,
        "sanitizer": None,
        "sustained": None,
        "foul": None,
        "cost": {**COST, "build_cached": False},
        "machine": MACHINE,
        "toolchain": {"assay": "0.1.0", "pytorch": "1.13.1"},
        "seed": "1",
        "samples": [PAIR],
        "log": "}]",
    }


def five():
    """The example of docs/score.md."""
    return [
        verdict("softmax", "wrong"),
        verdict("gelu", "slower", 0.7),
        verdict("matmul", "faster", 1.3),
        verdict("conv2d", "faster", 2.5),
        verdict("attention", "build_failed"),
    ]


def changed(original, *path, to):
    """A copy of the verdict with one member changed."""
    fresh = copy.deepcopy(original)
    at = fresh
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return fresh


@pytest.fixture
def run(tmp_path):
    """A folder of verdict files: run(*verdicts) writes them, one a file."""
    folder = tmp_path / "run"
    folder.mkdir()

    def write(*verdicts):
        for number, each in enumerate(verdicts):
            (folder / f"{number:02}.json").write_text(json.dumps(each, indent=1))
        return folder

    return write


@pytest.fixture
def scores(assay):
    """Calls `assay score --json`, checks the document against the schema, and returns it."""
    schema = json.loads((ROOT / "docs" / "score.schema.json").read_text())
    jsonschema.validators.validator_for(schema).check_schema(schema)

    def call(*arguments):
        result = assay("score", *arguments, "--json")
        assert result.code == GOOD, result
        document = json.loads(result.out)
        jsonschema.validate(document, schema)
        return document

    return call


def shares(document, kind="plain"):
    return {row["p"]: row[kind]["share"] for row in document["fast_p"]}


def test_the_verdicts_of_these_tests_follow_the_schema():
    schema = json.loads((ROOT / "docs" / "verdict.schema.json").read_text())
    for each in five():
        jsonschema.validate(each, schema)


def test_five_problems_of_known_outcome(assay, run, scores):
    document = scores(run(*five()))
    assert document["correct"]["share"] == 0.6
    for kind in ("plain", "certified"):
        known = shares(document, kind)
        assert (known[0], known[1], known[2]) == (0.6, 0.4, 0.2)
    assert document["mean_speedup"]["correct"] == pytest.approx((0.7 * 1.3 * 2.5) ** (1 / 3))
    assert document["mean_speedup"]["clamped"] == pytest.approx((1.3 * 2.5) ** (1 / 5))
    assert list(document["funnel"]["all"].values()) == [5, 5, 4, 4, 3, 2]
    assert document["curve"]["plain"] == [[0, 3], [0.7, 2], [1.3, 1], [2.5, 0]]
    text = assay("score", run(*five()))
    assert text.code == GOOD and "correct      60%: 3 of 5 problems" in text.out, text
    rows = {line.split()[1]: line.split() for line in text.out.splitlines() if "to" in line.split()}
    assert rows["0"][2] == "60%" and rows["1"][2] == "40%" and rows["2"][2] == "20%", text


def test_lists_and_lines_are_read_as_files_are(run, scores, tmp_path):
    expected = scores(run(*five()))
    (tmp_path / "list.json").write_text(json.dumps(five(), indent=2))
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(each) + "\n" for each in five()))
    assert scores(tmp_path / "list.json") == expected
    assert scores(tmp_path / "lines.jsonl") == expected


def test_the_saved_verdicts_are_the_default(assay, scores):
    result = assay("score")
    assert result.code == USAGE and "assay judge" in result.err, result
    saved = assay.home / "state" / "assay" / "verdicts"
    saved.mkdir(parents=True)
    (saved / "a.json").write_text(json.dumps(five()[2]))
    assert scores()["judged"] == 1


def test_problems_that_nobody_judged_stay_in_the_denominator(assay, run, scores):
    document = scores(run(*five()), "--problems", "10")
    assert document["asked"] == 10 and shares(document)[1] == 0.2
    result = assay("score", run(*five()), "--problems", "4")
    assert result.code == USAGE and "5 problems" in result.err, result


def test_a_suite_says_what_was_asked(assay, run, scores, tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "suite.toml").write_text(SUITE)
    for name in ("gelu", "sort", "matmul"):
        (suite / f"{name}.py").write_text("")
    document = scores(run(*five()), "--suite", suite)
    assert document["asked"] == 3 and document["not_judged"] == ["sort"]
    assert document["set_aside"]["problems_not_asked"] == ["attention", "conv2d", "softmax"]
    assert [row["mechanism"] for row in document["funnel"]["by_mechanism"]] == [
        "fusion",
        "order",
        "reuse",
    ]
    result = assay("score", run(*five()), "--suite", suite / "suite.toml", "--level", "1")
    assert result.code == GOOD and "score · 2 problems" in result.out.replace(" / ", " · "), result
    assert "not judged   sort" in result.out, result
    assert "attention, conv2d, matmul, softmax" in result.err, result
    assert assay("score", run(*five()), "--level", "1").code == USAGE
    (suite / "suite.toml").write_text(SUITE + 'colour = "red"\n')
    result = assay("score", run(*five()), "--suite", suite)
    assert result.code == USAGE and "colour" in result.err, result
    assert assay("score", run(*five()), "--suite", tmp_path / "none").code == USAGE


def test_several_attempts(run, scores):
    attempts = [
        verdict("gelu", "faster", 2.0, "a.cpp"),
        verdict("gelu", "wrong", candidate="b.cpp"),
        verdict("matmul", "build_failed", candidate="a.cpp"),
        verdict("matmul", "faster", 4.0, "b.cpp"),
    ]
    document = scores(run(*attempts), "--k", "1,2,3", "--p", "2,3")
    assert shares(document) == {2: 0.5, 3: 0.5}
    one, two = document["at_k"]
    assert (one["pass"], one["best_speedup"]) == (0.5, 1.5)
    assert (two["pass"], two["best_speedup"]) == (1, 3)
    assert one["fast_p"][0] == {"p": 2, "plain": 0.25, "certified": 0.25}
    assert document["at_k_left_out"] == [{"k": 3, "problem": "gelu", "attempts": 2}]


def test_the_picture_is_a_picture(assay, run, tmp_path):
    result = assay("score", run(*five()), "--svg", tmp_path / "curve.svg")
    assert result.code == GOOD and "wrote" in result.err, result
    root = xml.etree.ElementTree.parse(tmp_path / "curve.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == name + "svg" and root.get("role") == "img"
    assert root.find(name + "title").text == "fast_p of 5 problems against eager"
    assert "40% plain" in root.find(name + "desc").text
    result = assay("score", run(*five()), "--svg", "/proc/none/curve.svg")
    assert result.code == 8, result


def test_weights_prepared_once_count_in_plain_alone(assay, run, scores):
    prepared = changed(verdict("lstm", "wrong"), "correctness", "right_with_weights", to="constant")
    ordinary = changed(
        verdict("norm", "wrong"),
        *("correctness", "mistake"),
        to="huge values alone",
    )
    folder = run(*five(), prepared, ordinary)
    document = scores(folder)
    assert document["correct"]["count"] == 4
    assert document["fast_p"][0]["certified"]["count"] == 3
    assert document["apart"]["prepared_weights"]["problems_without_speed"] == 1
    assert document["apart"]["right_on_ordinary_values"]["attempts"] == 1
    kinds = {(row["outcome"], row["kind"]) for row in document["fingerprint"]["rows"]}
    assert {("wrong", "prepared weights"), ("wrong", "huge values alone")} <= kinds
    text = assay("score", folder)
    assert "1 of these is right only with weights prepared once" in text.out, text
    assert "1 candidate is right on ordinary values" in text.out, text


def test_the_page_is_one_safe_file(assay, run, tmp_path):
    evil = changed(verdict("<script>x</script>", "wrong"), "correctness", "hint", to="<script>")
    result = assay("score", run(*five(), evil), "--html", tmp_path / "score.html")
    assert result.code == GOOD and "wrote" in result.err, result
    page = (tmp_path / "score.html").read_text()
    assert page.startswith("<!doctype html>") and "<script" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page and "3 of 6" in page
    result = assay("score", run(*five()), "--html", "/proc/none/score.html")
    assert result.code == 8, result


@pytest.mark.parametrize(
    "content, reason",
    [
        (json.dumps(five()[0], indent=1)[:700], "cut off"),
        (json.dumps(changed(five()[0], "schema", to="assay.verdict/2")), "assay.verdict/2"),
        ('{"schema": "assay.score/1"}', "assay.score/1"),
        ("[]]", "after the list"),
        ("", "empty"),
        ("\x00\xff", "not a verdict"),
    ],
)
def test_what_cannot_be_read_is_named_and_costs_nothing_else(assay, run, scores, content, reason):
    folder = run(*five())
    (folder / "broken.json").write_text(content)
    result = assay("score", folder)
    assert result.code == USAGE and result.out == "", result
    assert "broken.json" in result.err and reason in result.err, result
    assert "--skip-broken" in result.err, result
    result = assay("score", folder, "--skip-broken")
    assert result.code == GOOD and "skipped" in result.err and "broken.json" in result.err, result
    document = scores(folder, "--skip-broken")
    assert document["judged"] == 5 and len(document["set_aside"]["skipped"]) == 1


def test_a_line_that_was_cut_off_costs_that_line(assay, scores, tmp_path):
    lines = [json.dumps(each) for each in five()]
    lines[1] = lines[1][:300]
    (tmp_path / "run.jsonl").write_text("\n".join(lines))
    result = assay("score", tmp_path / "run.jsonl")
    assert result.code == USAGE and "run.jsonl, verdict 2" in result.err, result
    assert scores(tmp_path / "run.jsonl", "--skip-broken")["judged"] == 4


def test_a_candidate_counts_once(assay, run, scores):
    again = changed(five()[3], "created", to="2026-11-22T07:00:00Z")
    again.update(id="0123456789ab", outcome="slower")
    again["speed"]["baselines"]["eager"].update(speedup=0.5, certified_speedup=None)
    folder = run(*five(), again)
    document = scores(folder, folder / "00.json")
    assert document["set_aside"]["judged_again"] == 2 and document["attempts"] == 5
    assert shares(document)[2] == 0
    result = assay("score", folder)
    assert "1 verdict set aside" in result.err, result


@pytest.mark.parametrize(
    "path, value, option, words",
    [
        (("machine", "cpu"), "Intel Xeon", "--any-machine", ["1 on Intel Xeon", "5 on AMD"]),
        (("machine", "threads"), 2, "--any-machine", ["threads a side: 2"]),
        (("problem", "set"), {"ROWS": "64"}, "--any-size", ["matmul", "ROWS=512", "ROWS=64"]),
        (("problem", "hash"), digest("edited"), "--any-size", ["matmul", "two problem files"]),
    ],
)
def test_what_does_not_compare_is_not_mixed(assay, run, scores, path, value, option, words):
    other = changed(verdict("matmul", "faster", 3.0, "other.cpp"), *path, to=value)
    folder = run(*five(), other)
    result = assay("score", folder)
    assert result.code == USAGE and option in result.err, result
    assert all(word in result.err for word in words), result
    assert scores(folder, option)["attempts"] == 6


def test_baselines_are_not_mixed(assay, run, scores):
    other = verdict("matmul", "faster", 3.0, "other.cpp")
    eager = other["speed"]["baselines"]["eager"]
    other["speed"].update(headline="compiled", baselines={"compiled": eager, "eager": eager})
    folder = run(*five(), other)
    result = assay("score", folder)
    assert result.code == USAGE and "--baseline" in result.err, result
    assert scores(folder, "--baseline", "eager")["baseline"] == "eager"
    assert assay("score", folder, "--baseline", "compiled").code == USAGE


def test_names_cannot_write_to_the_terminal(assay, run):
    odd = verdict("\x1b]0;pwned\x07matmul", "faster", 2.0)
    odd["machine"] = dict(MACHINE, cpu="\x1b[2Jcpu")
    for arguments in ([], ["--problems", "1"]):
        result = assay("score", run(*five(), odd), *arguments)
        assert "\x1b" not in result.out + result.err, result


@pytest.mark.parametrize("arguments", [["--p", "-1"], ["--p", "nan"], ["--k", "0"], ["--p", "x"]])
def test_bad_options(assay, run, arguments):
    result = assay("score", run(*five()), *arguments)
    assert result.code == USAGE and result.out == "", result


def test_nothing_to_score(assay, tmp_path):
    (tmp_path / "empty").mkdir()
    result = assay("score", tmp_path / "empty")
    assert result.code == USAGE and "no verdict" in result.err, result
    result = assay("score", tmp_path / "absent")
    assert result.code == USAGE and "absent" in result.err, result
