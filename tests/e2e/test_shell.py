"""Manners: completions in real shells, the manual page, settings files, suggestions, events."""

import json
import re
import shutil
import subprocess

import pytest

from conftest import ASSAY, GOOD, NOT_FASTER, ROOT, SOFTMAX, UNSETTLED, USAGE, fits

KERNELS = ROOT / "kernels" / "softmax"


def complete(assay, words):
    """What bash offers for the last of the words."""
    script = (
        f'PATH="{ASSAY.parent}:$PATH"; source <(assay completion bash);'
        f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1};"
        '_assay; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    process = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=assay.home,
        env=assay.environment,
        timeout=30,
    )
    assert process.returncode == 0 and not process.stderr, process
    return process.stdout.split()


def test_bash_completes_commands_options_values_and_problems(assay):
    assert complete(assay, ["assay", "ju"]) == ["judge"]
    assert complete(assay, ["assay", "sa"]) == ["sass"]
    assert complete(assay, ["assay", "sass", "--arch"]) == ["--architecture"]
    assert complete(assay, ["assay", "judge", "--correct"]) == ["--correctness-only"]
    assert complete(assay, ["assay", "judge", "softmax", "--size", "s"]) == ["small"]
    assert "transposed_conv2d" in complete(assay, ["assay", "judge", "trans"])
    assert complete(assay, ["assay", "problems", "sh"]) == ["show"]
    assert complete(assay, ["assay", "problems", "show", "--prof"]) == ["--profile"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_sound_scripts(assay, write, shell):
    assert shutil.which(shell), f"{shell} comes with scripts/setup"
    script = write("script", assay("completion", shell).out)
    process = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=30)
    assert process.returncode == 0 and not process.stderr, process


def test_fish_offers_what_bash_does(assay, write):
    script = write("assay.fish", assay("completion", "fish").out)
    command = f'source {script}; complete -C"assay problems s"'
    process = subprocess.run(
        ["fish", "-c", command], capture_output=True, text=True, cwd=assay.home, timeout=30
    )
    assert "show" in process.stdout, process


def test_an_unknown_shell_is_refused(assay):
    run = assay("completion", "csh")
    assert run.code == USAGE and "use bash, zsh or fish" in run.err, run


def test_the_manual_page_has_every_command_and_no_fault(assay, write):
    page = write("assay.1", assay("man").out)
    process = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True, timeout=30
    )
    faults = [line for line in process.stdout.splitlines() if "missing date" not in line]
    assert not faults, faults
    text = subprocess.run(["mandoc", "-Tascii", page], capture_output=True, text=True).stdout
    for command in ("JUDGE", "SCORE", "DOCTOR", "PROBLEMS SHOW", "COMPLETION"):
        assert f"ASSAY {command}" in re.sub(".\x08", "", text), command


def test_typos_come_with_the_nearest_word(assay):
    for words, said in (
        (["jugde", SOFTMAX], "did you mean 'judge'?"),
        (["judge", SOFTMAX, "x.cpp", "--sixe", "tiny"], "did you mean '--size'?"),
        (["problems", "shwo"], "did you mean 'show'?"),
    ):
        run = assay(*words)
        assert run.code == USAGE and said in run.err, run


def test_settings_of_a_folder_become_defaults(assay, write):
    write("assay.toml", "[judge]\nsize = 'tiny'\nthreads = 1\n")
    run = assay.judge(SOFTMAX, KERNELS / "naive.cpp", "--correctness-only")
    assert run.code == GOOD and run.verdict["problem"]["size"] == "tiny", run
    shown = assay("config", "show", "--origin").out
    assert "assay.toml line 2" in shown and "# assay.toml: read" in shown, shown
    write("assay.toml", "[judge]\nsise = 'tiny'\n")
    run = assay.judge(SOFTMAX, KERNELS / "naive.cpp")
    assert run.code == USAGE and "line 2" in run.err and "did you mean 'size'?" in run.err, run


# A folder that a model wrote could have brought a 'python' to run, or a tolerance that all pass.
@pytest.mark.parametrize("setting", ["python = './x'", "tolerance = 'allclose:10'", "p = 0.01"])
def test_a_folder_cannot_make_the_judge_easier(assay, write, setting):
    write("assay.toml", f"[judge]\n{setting}\n")
    run = assay.judge(SOFTMAX, KERNELS / "naive.cpp", "--size", "tiny")
    assert run.code == USAGE and "may not set" in run.err, run


def test_events_are_json_lines(assay):
    run = assay("judge", SOFTMAX, KERNELS / "naive.cpp", "--size", "tiny", "--jsonl")
    events = [json.loads(line) for line in run.out.splitlines()]
    for event in events:
        fits(event, "event")
    fits(events[-2]["verdict"], "verdict")
    kinds = [event["event"] for event in events]
    assert kinds[0] == "progress" and kinds[-2:] == ["verdict", "end"], kinds
    assert events[-2]["verdict"]["candidate"]["path"].endswith("naive.cpp")
    assert events[-1]["exit_code"] == run.code and run.code in (NOT_FASTER, UNSETTLED), run
    assert assay("judge", SOFTMAX, "x.cpp", "--json", "--jsonl").code == USAGE


def test_each_command_has_a_page_of_its_own(assay):
    pages = assay.home / "pages"
    pages.mkdir()
    assert assay("man", "--folder", pages).code == 0
    for (name,) in (words for words in commands_of(assay) if len(words) == 1):
        page = pages / f"assay-{name}.1"
        lint = ["mandoc", "-Tlint", "-Wwarning", page]
        process = subprocess.run(lint, capture_output=True, text=True, timeout=30)
        faults = [line for line in process.stdout.splitlines() if "missing date" not in line]
        assert not faults, faults
    assert (pages / "assay-judge.1").read_text() == assay("man", "judge").out
    shown = subprocess.run(
        ["mandoc", "-Tascii", pages / "assay-judge.1"], capture_output=True, text=True
    ).stdout
    text = re.sub(".\x08", "", shown)
    assert "assay judge [OPTIONS] PROBLEM CANDIDATE..." in text and "Exit codes: 0" in text, text
    run = assay("man", "juge")
    assert run.code == USAGE and "no command 'juge'" in run.err, run


def commands_of(assay, *path):
    """Every command by its words, as --help lists them."""
    text = assay(*path, "--help").out
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  (\S+)", listed[1], re.MULTILINE) if listed else ():
        yield (*path, name)
        yield from commands_of(assay, *path, name)


def options_of(text):
    """The long options of a help text's lists."""
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE))


def test_the_page_and_the_completions_have_every_option(assay, write):
    """One shell asks for the options of all commands, as typing -- and the tab key would."""
    commands = list(commands_of(assay))
    assert ("judge",) in commands and ("problems", "show") in commands and len(commands) > 30
    helps = {command: options_of(assay(*command, "--help").out) for command in commands}
    page = re.sub(".\x08", "", subprocess.run(
        ["mandoc", "-Tascii", write("assay.1", assay("man").out)], capture_output=True, text=True
    ).stdout)
    parts = re.split(r"^ASSAY ([A-Z ]+)$", page, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2]))
    asked = "\n".join(
        f"COMP_WORDS=(assay {' '.join(command)} --); COMP_CWORD={len(command) + 1}; _assay;"
        f'printf "%s\\n" "= {" ".join(command)}" "${{COMPREPLY[@]}}"'
        for command in commands
    )
    script = write("ask", f'{assay("completion", "bash").out}\n{asked}\n')
    said = subprocess.run(["bash", script], capture_output=True, text=True, timeout=60).stdout
    offered = {part.split("\n")[0]: set(part.split("\n")[1:]) for part in said.split("= ")[1:]}
    for command, options in helps.items():
        words = " ".join(command)
        assert options, words
        in_page = set(re.findall(r"--[\w-]+", sections[words.upper()]))
        assert options <= in_page, (words, options - in_page)
        assert options <= offered[words], (words, options - offered[words])
