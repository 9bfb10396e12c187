"""Which tests run: shares of the thorough ones are parts of a whole, and what a change touches is
judged at once, by a table that has every defence.
"""
import fnmatch
import math
import types

import pytest
from cases import read_cases, read_classes
from touched import DEFENCES, in_turn, touched_defences, touched_exploits

from conftest import ROOT, is_chosen, share_of

CASES = read_cases("corpus")


def test_every_defence_that_has_a_switch_is_in_the_table():
    source = (ROOT / "src" / "base" / "defence_names.cc").read_text()
    names = {line.split('"')[1] for line in source.splitlines() if "{Defence::" in line}
    assert names <= {defence.name for defence in DEFENCES}


def test_every_class_of_the_corpus_is_some_defences():
    answered = {number for defence in DEFENCES for number in defence.classes}
    assert {case.number for case in CASES} <= answered <= set(read_classes())


def test_every_pattern_names_files_that_exist():
    files = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "host")
        for path in (ROOT / folder).rglob("*")
    ]
    for defence in DEFENCES:
        for pattern in defence.files:
            assert fnmatch.filter(files, pattern), f"{defence.name}: {pattern}"


def test_a_change_touches_its_own_defences_alone():
    found = touched_defences(["src/rules/steps.cc", "README.md"])
    assert [defence.name for defence in found] == ["steps"]
    assert {case.number for case in touched_exploits(found, CASES)} == {22, 29}
    assert touched_defences(["docs/score.md"]) == touched_defences([]) == []


def test_where_too_much_is_touched_everything_has_its_turn():
    names = [case.name for case in CASES]
    turns = [in_turn(names, 20, turn) for turn in range(math.ceil(len(names) / 20))]
    assert set().union(*turns) == set(names) and max(map(len, turns)) <= 20
    assert in_turn(names[:5], 20, 3) == names[:5] and in_turn([], 20, 3) == []


def chosen(names, marker="thorough", **options):
    """Those of parametrized tests, all with the marker, that run."""
    options = types.SimpleNamespace(**{"all": False, "share": "", "touched": ""} | options)
    items = [
        types.SimpleNamespace(
            nodeid=f"test.py::test[{name}]",
            callspec=types.SimpleNamespace(id=name),
            get_closest_marker=lambda wanted: wanted == marker or None,
        )
        for name in names
    ]
    config = types.SimpleNamespace(option=options)
    return [item.callspec.id for item in items if is_chosen(item, config)]


def test_shares_are_parts_of_a_whole():
    names = [str(number) for number in range(100)]
    shares = [chosen(names, share=f"{part}/7") for part in range(7)]
    assert sorted(sum(shares, []), key=int) == names and all(shares)
    assert chosen(names, all=True) == names == chosen(names, marker="another")
    assert chosen(names) == []
    for text in ("7/7", "-1/7", "3", "a/b"):
        with pytest.raises(pytest.UsageError, match="--share takes K/N"):
            share_of(text)


def test_what_is_touched_runs_though_it_is_thorough():
    names = ["steps", "fresh-values,steps", "freeze", "corpus/22_super_batch.cpp"]
    assert chosen(names, touched="steps") == names[:2]
    assert chosen(names, touched="poison,corpus/22_super_batch.cpp") == names[3:]
