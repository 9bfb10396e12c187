#include <CLI/CLI.hpp>

#include "cli/class_command.h"
#include "cli/validators.h"

namespace assay {
namespace {

constexpr int64_t kMost = 1'000'000;

void AddClass(int64_t* id, CLI::App& command) {
  command.add_option("CLASS", *id, "The class, by its number")
      ->required()
      ->check(Between(int64_t{1}, INT64_MAX));
}

void AddJson(bool* json, CLI::App& command) {
  command.add_flag("--json", *json, "One JSON document on stdout: the server's reply");
}

}  // namespace

void ServerPlace::AddTo(CLI::App& command) {
  command.add_option("--server", server, "The server's URL, such as https://assay.example.org")
      ->required();
  command.add_option("--token-file", token_file,
                     "File with your token for the server (default: $ASSAY_TOKEN)");
}

void ClassMakeOptions::AddTo(CLI::App& command) {
  command.add_option("NAME", name, "The name of the class")->required();
  place.AddTo(command);
  command.add_option("--deadline", deadline,
                     "When it ends, with a zone: 2026-12-18T18:00+01:00. Until then members do not "
                     "see each other's code; then the best candidates are judged once more");
  command.add_option("--jobs-a-day", jobs_a_day, "Jobs of an account in 24 hours")
      ->capture_default_str()
      ->check(Between(int64_t{1}, kMost));
  command.add_option("--worklogs-a-day", worklogs_a_day, "Worklogs of an account in 24 hours")
      ->capture_default_str()
      ->check(Between(int64_t{1}, kMost));
  command.add_option("--rubric", rubric, "A rubric in TOML (default: the shipped one)");
  command.add_option("--students", students, "Make an invitation for so many students, too")
      ->check(Between(int64_t{1}, int64_t{1000}));
  AddJson(&json, command);
  command.footer(
      "Example:\n  assay class make kernels-2026 --deadline 2026-12-18T18:00+01:00 --students 30 "
      "--server https://assay.example.org --token-file token\n\n"
      "Exit codes: 0 made; 2 the server refuses it; 8 the server is away.");
}

void ClassInviteOptions::AddTo(CLI::App& command) {
  AddClass(&id, command);
  place.AddTo(command);
  command.add_option("--role", role, "For whom: student, machine (a model) or mentor")
      ->capture_default_str()
      ->check(CLI::IsMember({"student", "machine", "mentor"}));
  command.add_option("--uses", uses, "How many may join by it")
      ->capture_default_str()
      ->check(Between(int64_t{1}, int64_t{1000}));
  command.add_option("--lasts", lasts, "How long it can be used: 7d, 36h or 90m")
      ->capture_default_str();
  command.add_option("--for", member,
                     "A member who lost the token, by name: the invitation makes a new one");
  AddJson(&json, command);
  command.footer(
      "Prints a link, which is shown once.\n"
      "Example:\n  assay class invite 3 --uses 30 --lasts 14d --server URL");
}

void ClassShowOptions::AddTo(CLI::App& command) {
  command.add_option("CLASS", id, "The class, by its number (default: a list of yours)")
      ->check(Between(int64_t{1}, INT64_MAX));
  place.AddTo(command);
  command.footer("Prints the server's JSON.");
}

void ClassSheetOptions::AddTo(CLI::App& command) {
  AddClass(&id, command);
  place.AddTo(command);
  command.add_option("-o,--out", out, "File (default: stdout)");
  command.footer("CSV: a line a worklog with its marks, and one for each student without.");
}

void ClassExportOptions::AddTo(CLI::App& command) {
  AddClass(&id, command);
  place.AddTo(command);
  command.add_option("-o,--out", out, "File (default: class-CLASS.tar.gz)");
  command.footer(
      "One file with all of the class: members, jobs, sources, verdicts, worklogs, marks. It has "
      "no "
      "token.\nExample:\n  assay class export 3 -o kernels-2026.tar.gz --server URL");
}

void ClassImportOptions::AddTo(CLI::App& command) {
  command.add_option("FILE", file, "As assay class export wrote it")->required();
  place.AddTo(command);
  AddJson(&json, command);
  command.footer(
      "Members get no tokens: invite them by name, with assay class invite CLASS --for NAME.\nA "
      "class is imported once.");
}

void WorklogSubmitOptions::AddTo(CLI::App& command) {
  command.add_option("--in", folder, "The worklog's folder")->capture_default_str();
  place.AddTo(command);
  AddJson(&json, command);
  command.footer(
      "Sends the worklog's files to the server, and prints what its check finds. A later upload "
      "replaces\nthis one, with all of its facts.\n"
      "Example:\n  assay worklog submit --in match --server https://assay.example.org "
      "--token-file token\n\n"
      "Exit codes: 0 the worklog is complete; 1 something is missing; 2 the server refuses it; 3 "
      "something\nwas changed or looks suspicious; 8 the server is away.");
}

}  // namespace assay
