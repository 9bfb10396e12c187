"""A worklog of many versions: how long `assay worklog render` and `check` take, and the first paint
of its page.

The worklog is examples/match, a match that was played, grown: versions by hand are added as copies
of the match's own under new names, with sources, facts and words of their own in the same chain.

    bench/worklog_page.py --versions 100 --browser --out rows.jsonl

With --browser (npm ci in tests/browser) a browser opens the page 7 times, each time afresh.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from rows import ROOT, append

MATCH = ROOT / "examples" / "match"
FIRST_PAINT = ROOT / "tests" / "browser" / "first_paint.mjs"
# As in src/archive/record.cc.
HASHED = "kind time name id problem outcome content source terms parent".split()
VERSION = '\n[[version]]\nname = "{0}"\nfile = "versions/{0}.cpp"\nfact = "{1}"\nwhy = {2}\n'


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Worklog:
    def __init__(self, folder):
        self.folder = folder
        lines = (folder / "facts.jsonl").read_text(encoding="utf-8").splitlines()
        self.facts = [json.loads(line) for line in lines]
        self.last_note = [f for f in self.facts if f["name"].startswith("worklog/")][-1]["hash"]

    def add(self, like, content, **changed):
        """Adds a fact like another one, in the chain of records. Returns its hash."""
        fact = {**like, **changed, "content": content}
        fact["sequence"] = self.facts[-1]["sequence"] + 1
        fact["parent"] = self.facts[-1]["hash"]
        text = f"assay.archive/1\n{fact['sequence']}\n"
        for name in HASHED:
            field = sha256(content) if name == "content" else fact[name]
            text += f"{len(field.encode())} {field}\n"
        fact["hash"] = sha256(text)
        self.facts.append(fact)
        return fact["hash"]

    def note(self, like, **changed):
        content = {**json.loads(like["content"]), "previous": self.last_note, **changed}
        self.last_note = self.add(like, dump(content))
        return self.last_note

    def versions(self):
        """The facts of each version that has a verdict: attempted, verdict, measured."""
        by_hash = {fact["hash"]: fact for fact in self.facts}
        attempted, versions = {}, {}
        for fact in self.facts:
            event = json.loads(fact["content"])
            if fact["name"] == "worklog/attempted":
                attempted[event["version"]] = fact
            elif fact["name"] == "worklog/measured" and event["verdict"]:
                name = event["version"]
                versions[name] = attempted[name], by_hash[event["verdict"]], fact
        return versions

    def copy(self, name, attempted, verdict, measured):
        said = json.loads(attempted["content"])
        source = (self.folder / said["file"]).read_text(encoding="utf-8") + f"// {name}\n"
        (self.folder / "versions" / f"{name}.cpp").write_text(source, encoding="utf-8")
        changed = {"version": name, "file": f"versions/{name}.cpp", "source": sha256(source)}
        fact = self.note(attempted, **changed)
        judged = json.loads(verdict["content"])
        judged["id"] = sha256(name)[:12]
        judged["candidate"].update(path=f"{name}.cpp", hash=sha256(source))
        facts = {"name": f"{name}.cpp", "id": judged["id"], "source": sha256(source)}
        self.note(measured, version=name, verdict=self.add(verdict, dump(judged), **facts))
        with open(self.folder / "worklog.toml", "a", encoding="utf-8") as words:
            words.write(VERSION.format(name, fact, json.dumps(said["why"], ensure_ascii=False)))

    def grow(self, count):
        versions = self.versions()
        models = [facts for name, facts in versions.items() if name.startswith("v")]
        for number in range(count - len(versions)):
            self.copy(f"v{100 + number}", *models[number % len(models)])
        with open(self.folder / "facts.jsonl", "w", encoding="utf-8") as out:
            out.writelines(dump(fact) + "\n" for fact in self.facts)


def time_of(command, times):
    """Seconds of whole processes. A check that tells of missing parts ends with code 1."""
    seconds = []
    for _ in range(times):
        begun = time.monotonic()
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        seconds.append(round(time.monotonic() - begun, 4))
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)}: {process.stdout}{process.stderr}")
    return seconds


def first_paints(page, times=7):
    command = ["node", str(FIRST_PAINT), str(times), page.resolve().as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(run.stdout)["seen"]


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/assay")
    parser.add_argument("--versions", type=int, default=100)
    parser.add_argument("--times", type=int, default=11)
    parser.add_argument("--browser", action="store_true", help="measure first paints, too")
    parser.add_argument("--keep", type=pathlib.Path, help="copy the worklog to this folder")
    parser.add_argument("--out", type=pathlib.Path, help="file to add the row to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "match"
        shutil.copytree(MATCH, folder)
        worklog = Worklog(folder)
        worklog.grow(arguments.versions)
        command = [arguments.program, "worklog"]
        there = ["--in", str(folder), "--archive", str(pathlib.Path(place) / "none.sqlite")]
        render = time_of([*command, "render", *there], arguments.times)
        check = time_of([*command, "check", *there], arguments.times)
        page = folder / "worklog.html"
        row = {
            "what": "examples/match grown, whole processes",
            "versions": len(worklog.versions()),
            "facts": len(worklog.facts),
            "page_bytes": page.stat().st_size,
            "gzip_bytes": len(gzip.compress(page.read_bytes(), 6)),
            "render_median_s": median(render),
            "check_median_s": median(check),
            "render_s": render,
            "check_s": check,
        }
        if arguments.browser:
            row["seen"] = first_paints(page)
            row["first_paint_median_ms"] = median([each["first_paint_ms"] for each in row["seen"]])
        if arguments.keep:
            shutil.copytree(folder, arguments.keep, dirs_exist_ok=True)
    print(json.dumps(row))
    if arguments.out:
        append(arguments.out, row)


if __name__ == "__main__":
    main()
