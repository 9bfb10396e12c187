#include <CLI/CLI.hpp>

#include "cli/worklog_command.h"
#include "worklog/mechanism.h"
#include "worklog/rubric.h"

namespace assay {

namespace {

std::string ShippedBuckets() {
  const auto rubric = ParseRubric(DefaultRubricText(), "the shipped rubric");
  return rubric ? BucketKeys(*rubric) : std::string();
}

}  // namespace

void RooflineOptions::AddTo(CLI::App& command) {
  command.add_option("PROBLEM", problem, "The name of a problem that comes with Assay, or a file")
      ->required();
  command
      .add_option("VERDICT", verdicts,
                  "Verdicts on it: files, or ids as cards and assay archive list show them")
      ->required();
  command.add_option("--svg", svg, "File for the picture");
  AddArchiveOption(command, &archive);
  command.footer(
      "Examples:\n  assay roofline softmax 3f2a9c01d4e7 8c1f00d2aa31\n"
      "  assay roofline softmax 3f2a9c01d4e7 --svg roofline.svg");
}

void WorklogPlace::AddTo(CLI::App& command) {
  command.add_option("--in", folder, "The worklog's folder")->capture_default_str();
  AddArchiveOption(command, &archive);
}

void WorklogInitOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  problem.AddGradTo(command);
  command.get_option("PROBLEM")->required(false);
  place.AddTo(command);
  command
      .add_option("--tier", tier,
                  "1: a single operator, against a tuned library; 2: a chain of operators, where "
                  "the win is fusion; 3: a block of a network (default: the problem's level, or 2)")
      ->check(CLI::Range(1, 3));
  command.add_option("--author", author, "Name in the report");
  command
      .add_option("--baseline", asked.baselines,
                  "The reference to beat, as in assay judge: eager, compiled, best...")
      ->capture_default_str();
  command
      .add_option("--device", asked.device,
                  "Where to judge: cpu or cuda (default: as a "
                  "candidate needs)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option("--threads", asked.threads, "Threads of each side (default: all cores but one)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--budget", asked.effort.speed_budget_s, "Seconds for gate 2 of a version")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--python", asked.python, "Python interpreter that has PyTorch");
  command.add_flag("--suggest", suggest, "List problems that make a match, by tier and mechanism");
  command.add_option("--mechanism", mechanism, "With --suggest: only problems with this mechanism");
  command.footer(
      "Examples:\n  assay worklog init --suggest --tier 2\n"
      "  assay worklog init masked_softmax_scale --size small --in match\n"
      "  assay worklog init softmax --size small --grad\n\n"
      "Exit codes: 0 the match begins; 2 usage; 8 nothing can be recorded.");
}

void WorklogPredictOptions::AddTo(CLI::App& command) {
  place.AddTo(command);
  command.add_option("--regime", regime, "What will limit the kernel: memory, compute or overhead")
      ->required()
      ->check(CLI::IsMember({"memory", "compute", "overhead"}));
  command.add_option("--ratio", ratio, "The speedup that your last version will have, such as 2")
      ->required();
  command.add_option("--because", because, "Why")->required();
  command.footer(
      "A prediction is sealed before anything is measured: its record stands in the archive's "
      "chain.\nExample:\n  assay worklog predict --regime memory --ratio 2 --because \"four passes "
      "become one\"");
}

void WorklogAttemptOptions::AddTo(CLI::App& command) {
  command.add_option("FILE", file, "The version's source: .cpp, .c, .cu or .py")->required();
  place.AddTo(command);
  command.add_option("--why", why, "What was changed, and why: the measurement that led to it");
  command.add_option("--mechanism", mechanisms,
                     "A mechanism that the version rests on (repeatable): " + MechanismNames());
  command
      .add_option("--budget", budget_s, "Seconds for gate 2 of this version (default: as at init)")
      ->check(CLI::PositiveNumber);
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Example:\n  assay worklog attempt v2.cpp --why \"v1 read each row three times; one pass "
      "keeps it in registers\"\n\nExit codes: 0 it is measured and recorded, however fast; 2 "
      "usage; "
      "8 it could not be measured.");
}

void WorklogModelOptions::AddTo(CLI::App& command) {
  place.AddTo(command);
  command.add_option("--proposer", proposer,
                     "The model: openai:MODEL, anthropic:MODEL, command:PROGRAM, inbox:FOLDER or "
                     "replay:FILE");
  command.add_option("--budget", budget_s, "Seconds for gate 2 of an answer (default: as at init)")
      ->check(CLI::PositiveNumber);
  command.add_option("--attempts", attempts, "Answers to ask for")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command.add_option("--prompt", prompt, "With --answer: a file with the prompt that was used");
  command.add_option("--answer", answer, "A file with a model's answer, brought by you");
  command.add_option("--form", form, "Form of candidates that are asked for")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "device", "python"}));
  command.add_option("--prompts", prompts,
                     "A folder with templates that take the place of the shipped ones");
  command.add_option("--prompt-tokens", prompt_tokens, "Length of a prompt, about, at most")
      ->capture_default_str()
      ->check(CLI::Range(500, 2'000'000));
  command.add_option("--answer-tokens", answer_tokens, "Length of an answer, at most")
      ->capture_default_str()
      ->check(CLI::Range(16, 2'000'000));
  command.add_option("--temperature", temperature, "Of the model")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 2.0));
  command.add_option("--key-file", proposing.key_file,
                     "File with the key of a model's service (default: the environment)");
  command.add_option("--models", proposing.models_file, "A table of models of your own, in TOML");
  command.add_option("--record", proposing.record_file,
                     "A transcript (.jsonl) to which answers are added, for replay:FILE");
  command.add_option("--provenance", proposing.provenance,
                     "Who or what answers: it stands beside the prompt");
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "All answers get the same prompt, and all are kept. Another prompt begins another series.\n"
      "With inbox:FOLDER prompts appear there as NAME.prompt.md, and answers are awaited as\n"
      "NAME.answer.md.\n"
      "Examples:\n  assay worklog model --proposer openai:qwen3@http://localhost:8080/v1\n"
      "  assay worklog model --prompt asked.md --answer answer.md --provenance \"a chat window\"");
}

void WorklogTogetherOptions::AddTo(CLI::App& command) {
  attempt.AddTo(command);
  command.add_option("--prompt", prompt, "With --answer: a file with the prompt that was used");
  command.add_option("--answer", answer,
                     "A file with the model's answer, whole: the report shows it beside FILE");
  command.footer(
      "To steer: write a further prompt that holds the model's last answer and what to change, ask "
      "for its\nanswer wherever the model is, save the code in it as FILE, and bring both by "
      "--prompt "
      "and --answer.\nAn answer to be measured as it came, without your hand in it, is worklog "
      "model "
      "--answer's.\n"
      "Example:\n  assay worklog together t1.cpp --why \"the model's m2, told to keep the row in "
      "registers\"");
}

void WorklogDuelOptions::AddTo(CLI::App& command) {
  command.add_option("VERSION", version, "Such as v3 (default: the best by hand)");
  command.add_option("OTHER", other, "Such as m1 (default: the model's best)");
  place.AddTo(command);
  command.add_option("--budget", budget_s, "Seconds for gate 2 (default: as at init)")
      ->check(CLI::PositiveNumber);
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Both run beside each other in one judgement, as with assay judge --against. The "
      "head-to-head "
      "uses\nit in place of the ratios to the reference.\n"
      "Examples:\n  assay worklog duel\n  assay worklog duel v3 v4 --budget 120\n\n"
      "Exit codes: 0 it is measured and recorded; 2 usage; 8 it could not be measured.");
}

void WorklogAlsoOptions::AddTo(CLI::App& command) {
  command.add_option("VERDICT", verdicts, "Ids, as cards and assay worklog check show them")
      ->required();
  command.add_option("--why", why, "What you wanted to know, and what it showed")->required();
  place.AddTo(command);
  command.footer(
      "Judgements on the match's reference that the worklog leaves out are suspicious to check. "
      "This\ncommand puts them among the facts, and the report lists them with their why. A source "
      "that one of\nthem found wrong is wrong as a version, too.\n"
      "Example:\n  assay worklog also 3f2a9c01d4e7 --why \"v3 against v4: the prefetch is worth "
      "1.5x\"");
}

void WorklogStatusOptions::AddTo(CLI::App& command) {
  place.AddTo(command);
  command.footer("Example:\n  assay worklog status --in match");
}

void WorklogStuckOptions::AddTo(CLI::App& command) {
  command.add_option("PLAYER", player, "hand, model or together")->required();
  command.add_option("TEXT", text, "What it got stuck on")->required();
  place.AddTo(command);
  command.footer(
      "Example:\n  assay worklog stuck hand \"v1 lost a NaN in fmax; it took me an hour to see\"");
}

void WorklogClaimOptions::AddTo(CLI::App& command) {
  command.add_option("VERSION", version, "Such as v3 or m1")->required();
  command.add_option("MECHANISM", mechanism, "One of: " + MechanismNames())->required();
  command.add_option("TEXT", text, "How it shows, with a number")->required();
  place.AddTo(command);
  command.footer(
      "Mechanisms:\n" + MechanismMeanings() +
      "A second claim of one mechanism for a version takes the place of the first.\n"
      "Example:\n  assay worklog claim v2 fusion \"20 us against 90 us: the row is read once\"");
}

void WorklogRenderOptions::AddTo(CLI::App& command) {
  place.AddTo(command);
  command.add_flag("--present", present,
                   "Write present.html instead: full screens, one a section, for a demo day");
  command.footer("Example:\n  assay worklog render --in match");
}

void WorklogCheckOptions::AddTo(CLI::App& command) {
  place.AddTo(command);
  command.footer(
      "Exit codes: 0 the worklog is complete; 1 something is missing; 2 usage; 3 something was "
      "changed\nor looks suspicious.");
}

void WorklogGradeOptions::AddTo(CLI::App& command) {
  command.add_option("FOLDER", folders, "Worklogs to grade (default: --in)");
  place.AddTo(command);
  command.add_option("--rubric", rubric,
                     "A rubric in TOML (default: rubric.toml of the folder, else the shipped one)");
  command.add_option("--mark", marks, "KEY=POINTS: the mark of a bucket, such as depth=25");
  command.add_option("--mentor", mentor, "Name of who marks");
  command.add_option("--note", note, "A word for the author, added to those before");
  command.add_option("--lift", lift, "Why suspicious things are none: honesty counts again");
  command.add_flag("--evidence", evidence,
                   "The evidence in full, as for one worklog (default for several: a line each)");
  command.add_option("--sheet", sheet,
                     "File to hand to the author, in Markdown: marks, notes, and what was found");
  command.add_option("--csv", csv, "File for a line a worklog; - for stdout");
  command.add_option("--page", page, "File for the worklogs of a class as one HTML page");
  command.footer(
      "Evidence is proposed, the mentor gives the marks; they are kept in marks.toml.\n"
      "Buckets of the shipped rubric, with their points: " +
      ShippedBuckets() +
      ".\n"
      "Examples:\n  assay worklog grade --in match\n"
      "  assay worklog grade --in match --mark depth=25 --mentor M --note \"show v2's profile\"\n"
      "  assay worklog grade --in match --sheet sheet.md\n"
      "  assay worklog grade class/* --csv grades.csv --page class.html\n\n"
      "Exit codes: 0 all are graded; 2 usage, or the one worklog cannot be read; 3 some of "
      "several\n"
      "could not be graded: their lines say why.");
}

void WorklogCertificateOptions::AddTo(CLI::App& command) {
  place.AddTo(command);
  command.add_option("-o,--out", out, "File (default: certificate.pdf in the worklog's folder)");
  command.footer(
      "A worklog is certified once assay worklog check finds it complete, and nothing suspicious "
      "in "
      "it\nbut what a mentor lifted: assay worklog grade --lift WHY.\n"
      "Example:\n  assay worklog certificate --in match -o certificate.pdf");
}

}  // namespace assay
