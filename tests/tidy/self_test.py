"""Shows that each rule of tidy.py can fail: a small clean project, spoiled in one way at a time.

Each spoiling must be reported by its own rule, on its line, and by no other.
"""

import pathlib
import sys
import tempfile

import tidy

CLEAN = {
    **{name: "Text.\n" for name in tidy.DOCUMENTS},
    tidy.SCHEMA: '{"$schema": "https://json-schema.org/draft/2020-12/schema"}\n',
    "src/rules/CMakeLists.txt": "assay_folder(assay_rules SOURCES gate.cc TESTS gate_test.cc)\n",
    "src/rules/gate.h": '#pragma once\n#include "model/verdict.h"\nint Gate(int x);\n',
    "src/rules/bar.h": "#pragma once\nstruct Bar {};\n",
    "src/rules/gate.cc": '#include "rules/gate.h"\n\nint Gate(int x) {\n  return x;\n}\n',
    "src/rules/gate_test.cc": '#include "base/files.h"\n#include "rules/gate.h"\n',
    "src/cli/CMakeLists.txt": "add_executable(assay main.cc)\n",
    "src/cli/main.cc": '#include "session/judge.h"\nint main() { puts("hello"); }\n',
    "host/native/CMakeLists.txt": "add_executable(native_host main.cc)\n",
    "host/native/main.cc": '#include "wire/types.h"\nint main() {}\n',
    "include/assay/kernel.h": "#ifndef ASSAY_KERNEL_H_\n#define ASSAY_KERNEL_H_\n#endif\n",
    "kernels/softmax/naive.cpp": "#include <assay/kernel.h>\n",
}

# Things that look like faults and are none.
INNOCENT = "".join(
    line + "\n"
    for line in [
        "// using namespace std; system(x); rand(); printf",
        'const char* a = "using namespace std; system(x)";',
        "/* sleep_for(",
        "   usleep( */",
        "static_assert(true);",
        "int operand(int);",
        "int b = operand(1) + Filesystem(2) + x.system(3);",
        'auto raw = R"(printf("x"))";',
        "char quote = '\"'; int million = 1'000'000;",
        'bool c = kind == "budget" || path.ends_with(".py") || text.find(\'\\n\') > 0;',
        "bool d = verdict.message.contains(correctness.hint) || message.starts_with(name);",
        '// message.contains("its memory limit")',
    ]
)

LONG_BODY = "  Step();\n" * (tidy.FUNCTION_LINES_MAX + 1)

# Decisions by the words of a message, as they once were made.
SEARCHES = [
    'verdict.message.contains("its memory limit")',
    'text.contains(", which is not here (")',
    'verdict.message.contains("--budget")',
    'result->second.note.find("other processes") != std::string::npos',
    'message.find("line ") != std::string::npos',
    'finding.text.starts_with("there is no archive")',
    'why.starts_with("no CUDA driver")',
    'why.find("CUDA_ERROR_NO_DEVICE") != std::string::npos',
    'support.missing.find("apt-get install bubblewrap") != std::string::npos',
    'machine.isolation.starts_with("WEAK")',
    'built.failure->contains("the extension does not compile")',
    'error.message.contains("CUDA")',
    'finding.mend != "see above"',
    'hint.find(phrase.in_hint) != std::string::npos',
    'verdict.correctness->hint.starts_with(words)',
    'strstr(said, "out of memory") != nullptr',
]
SEARCHES_OF_CONSTANTS = [
    'constexpr std::string_view kSentence = "It would fit with ";\n'
    "bool F() { return said.starts_with(kSentence); }\n",
    'inline constexpr const char* kNoSummary = "it printed no summary";\n'
    "bool F() { return record.failure == kNoSummary; }\n",
]

# (rule, file, text added at its end or None to remove it, line that must be named or None for any)
SPOILED = [
    ("rule_layers", "src/rules/gate.h", '#include "session/judge.h"\n', 4),
    ("rule_layers", "src/rules/gate.cc", '#include "sandbox/sandbox.h"\n', 6),
    ("rule_layers", "src/rules/gate_test.cc", '#include "score/fast_p.h"\n', 3),
    ("rule_layers", "src/wire/channel.h", '#pragma once\n#include "base/result.h"\n', 2),
    ("rule_layers", "src/model/verdict.h", '#pragma once\n#include "rules/gate.h"\n', 2),
    ("rule_layers", "src/report/card.h", '#pragma once\n#include "cli/options.h"\n', 2),
    ("rule_layers", "src/report/card.h", '#pragma once\n#include "session/session.h"\n', 2),
    ("rule_layers", "src/session/judge.h", '#pragma once\n#include "report/card.h"\n', 2),
    ("rule_layers", "src/base/clock.h", '#pragma once\n#include "wire/types.h"\n', 2),
    ("rule_layers", "src/util/all.h", "#pragma once\n", 1),
    ("rule_layers", "host/native/main.cc", '#include "base/result.h"\n', 3),
    ("rule_purity", "src/rules/gate.cc", "#include <fstream>\n", 6),
    ("rule_purity", "src/rules/gate.cc", '#include "base/clock.h"\n', 6),
    ("rule_slow_headers", "src/rules/gate.h", "#include <nlohmann/json.hpp>\n", 4),
    ("rule_slow_headers", "src/rules/gate.h", '#include "base/toml.h"\n', 4),
    ("rule_columns", "src/rules/gate.cc", "//" + "x" * tidy.COLUMNS_MAX + "\n", 6),
    ("rule_columns", "tests/e2e/a.py", "#" + "x" * tidy.COLUMNS_MAX + "\n", 1),
    ("rule_whitespace", "src/rules/gate.cc", "int a; \n", 6),
    ("rule_whitespace", "src/rules/gate.cc", "\tint a;\n", 6),
    ("rule_whitespace", "src/rules/gate.cc", "int a;", 6),
    ("rule_file_length", "src/rules/gate.cc", "int a;\n" * tidy.FILE_LINES_MAX, 1),
    ("rule_function_length", "src/rules/gate.cc", "int Long(int x) {\n" + LONG_BODY + "}\n", 6),
    (
        "rule_function_length",
        "src/rules/gate.cc",
        "int Long(int x,\n         int y) {\n" + LONG_BODY + "}\n",
        7,
    ),
    (
        "rule_function_length",
        "src/rules/gate.h",
        "struct S {\n  int Long() {\n" + LONG_BODY + "  }\n};\n",
        5,
    ),
    (
        "rule_function_length",
        "tests/e2e/a.py",
        "def long():\n" + "    step()\n" * tidy.FUNCTION_LINES_MAX,
        1,
    ),
    ("rule_function_length", "tests/e2e/a.py", "def broken(:\n", 1),
    ("rule_bans", "src/rules/gate.cc", "using namespace std;\n", 6),
    ("rule_bans", "src/rules/gate.cc", "void F() { std::this_thread::sleep_for(x); }\n", 6),
    ("rule_bans", "src/rules/gate_test.cc", "void F() { usleep(1); }\n", 3),
    ("rule_bans", "src/rules/gate.cc", "int F() { return std::rand(); }\n", 6),
    ("rule_bans", "src/rules/gate.cc", 'int F() { return system("ls"); }\n', 6),
    ("rule_bans", "src/rules/gate.cc", "void F(int x) { assert(x); }\n", 6),
    ("rule_bans", "src/rules/gate.cc", "void F(char* x) { sprintf(x, y); }\n", 6),
    ("rule_bans", "src/rules/gate.cc", 'void F() { std::printf("x"); }\n', 6),
    ("rule_bans", "src/rules/gate.cc", "void F() { std::cout << 1; }\n", 6),
    *(
        ("rule_prose", "src/rules/gate.cc", f"bool F() {{ return {code}; }}\n", 6)
        for code in SEARCHES
    ),
    *(("rule_prose", "src/rules/gate.cc", code, 7) for code in SEARCHES_OF_CONSTANTS),
    (
        "rule_prose",
        "src/rules/gate.cc",
        "bool F() {\n  return message.contains(\n      \"of several words\");\n}\n",
        7,
    ),
    ("rule_prose", "host/python/assay_host/a.py", "x = 'not here' in str(error)\n", 1),
    ("rule_prose", "host/python/assay_host/a.py", "x = text.startswith('it would fit')\n", 1),
    ("rule_prose", "host/python/assay_host/a.py", "x = said == 'no room'\n", 1),
    ("rule_own_text", "src/rules/gate.cc", "// see /home/someone/notes\n", 6),
    ("rule_own_text", "docs/verdict.md", "TO" + "DO: write this\n", 2),
    (
        "rule_type_names",
        "src/session/judge.h",
        "#pragma once\nstruct Bar {};\n",
        2,
    ),
    ("rule_header_guard", "src/rules/other.h", "int Other();\n", 1),
    ("rule_header_guard", "include/assay/other.h", "#ifndef A\n#define B\n#endif\n", 1),
    ("rule_registered", "src/rules/lost_test.cc", "int a;\n", 1),
    ("rule_registered", "src/rules/lost.cc", "int a;\n", 1),
    ("rule_registered", "src/rules/lost_fuzz.cc", "int a;\n", 1),
    ("rule_documents", "docs/verdict.md", None, 1),
    ("rule_documents", "CHANGELOG.md", None, 1),
    ("rule_documents", tidy.SCHEMA, "}\n", 1),
    ("rule_documents", "src/rules/gate.h", "// docs/nowhere.md tells more\n", 4),
]


def faults_of(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in tidy.Tree.FOLDERS:
            (pathlib.Path(folder) / name).mkdir(exist_ok=True)
        return tidy.faults(folder)


def main():
    wrong = []
    clean = faults_of({**CLEAN, "src/rules/gate.cc": CLEAN["src/rules/gate.cc"] + INNOCENT})
    if clean:
        wrong.append(f"the clean project is called faulty: {clean}")
    for rule, name, added, line in SPOILED:
        files = dict(CLEAN)
        if added is None:
            del files[name]
        else:
            files[name] = files.get(name, "") + added
        if name.endswith(".cc") and name not in CLEAN and rule != "rule_registered":
            files[str(pathlib.PurePosixPath(name).parent / "CMakeLists.txt")] = name
        found = faults_of(files)
        if [(fault[0], fault[1], fault[2]) for fault in found] != [(rule, name, line)]:
            wrong.append(f"{rule} on {name} with {added!r:.60}: got {found}")
    unshown = {rule.__name__ for rule in tidy.RULES} - {rule for rule, *_ in SPOILED}
    if unshown:
        wrong.append(f"rules that nothing shows to fail: {sorted(unshown)}")
    for message in wrong:
        print(message)
    print(f"self_test: {len(SPOILED)} spoilings, {len(wrong)} not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
