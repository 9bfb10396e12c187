#include <CLI/CLI.hpp>

#include "cli/archive_command.h"
#include "cli/options.h"
#include "cli/validators.h"

namespace assay {

void ArchiveVerifyOptions::AddTo(CLI::App& command) {
  AddArchiveOption(command, &archive);
  command.footer(
      "Exit codes: 0 the archive is whole; 2 there is none; 3 something was changed, or is "
      "missing;\n8 it cannot be read.");
}

void ArchiveListOptions::AddTo(CLI::App& command) {
  AddArchiveOption(command, &archive);
  command.add_option("--problem", problem, "Only records of this problem, by its name");
  command.add_option("--outcome", outcome, "Only verdicts with this outcome, such as faster");
  command.add_option("--kind", kind, "Only records of this kind, such as verdict or search");
  command.add_option("--limit", limit, "Number of records; 0: all")
      ->capture_default_str()
      ->check(Between(int64_t{0}, int64_t{1'000'000'000}));
  command.footer(
      "Examples:\n  assay archive list --problem softmax --outcome faster\n"
      "  assay archive list --limit 0");
}

void ArchiveShowOptions::AddTo(CLI::App& command) {
  command
      .add_option(
          "HASH", hash,
          "The first digits of a record's hash, or of its content's; or a verdict's id, or a "
          "search's")
      ->required();
  AddArchiveOption(command, &archive);
  command.add_flag("--feedback", feedback,
                   "Print what the next prompt of a search would say of this verdict");
  command.add_flag("--tree", tree,
                   "Of a search: the lineage of its candidates, each under its first parent");
  command.footer(
      "Examples:\n  assay archive show 3f2a9c01d4e7\n  assay archive show 8c1f00d2aa31 --tree");
}

void ArchiveDiffOptions::AddTo(CLI::App& command) {
  command.add_option("BEFORE", before, "A record of a candidate or a verdict, as for show")
      ->required();
  command.add_option("AFTER", after, "Another")->required();
  AddArchiveOption(command, &archive);
  command.footer("Example:\n  assay archive diff 3f2a9c01d4e7 8c1f00d2aa31");
}

void ArchiveExportOptions::AddTo(CLI::App& command) {
  command.add_option("FILE", file, "File to write, .jsonl; - for stdout")->required();
  AddArchiveOption(command, &archive);
  command
      .add_option("--as", as,
                  "A dataset for training in place of the records: verified, sft, preference, rl, "
                  "fouls or kernelbook")
      ->check(CLI::IsMember({"verified", "sft", "preference", "rl", "fouls", "kernelbook"}));
  command.add_option("--p", p, "The speedup that sft, and the reward of rl, ask to be certified")
      ->capture_default_str()
      ->check(Between(0.0, 1e6));
  command.add_option("--formula", formula, "The reward of rl")
      ->capture_default_str()
      ->check(CLI::IsMember({"fast", "kevin"}));
  command.add_option("--test-share", test_share, "Share of problems in the split 'test'")
      ->capture_default_str()
      ->check(Between(0.0, 1.0));
  command.add_option("--licence", licence,
                     "The licence of the answers, to be written on each line");
  command.footer(
      "Examples:\n  assay archive export everything.jsonl\n"
      "  assay archive export sft.jsonl --as sft --p 1.2\n\n"
      "Exit codes: 0 all are written; 3 records whose bytes were changed are left out, and named;\n"
      "2 usage; 8 the archive cannot be read.");
}

void ArchiveCopyOptions::AddTo(CLI::App& command) {
  command.add_option("FROM", from, "An archive: a file, or the URL of a PostgreSQL database")
      ->required();
  command.add_option("TO", to, "Another, which is made where it is missing")->required();
  command.footer(
      "Records are copied as they stand, with their hashes. A copy that was interrupted goes on,\n"
      "and a later one adds what is new.\n\n"
      "Example:\n  assay archive copy ~/.local/share/assay/archive.sqlite "
      "postgresql://me@db/assay\n\n"
      "Exit codes: 0 TO has all of FROM, and is whole; 2 the two differ, or usage; 3 TO is\n"
      "damaged; 8 one of them cannot be read or written.");
}

void ArchiveGrantOptions::AddTo(CLI::App& command) {
  command.add_option("URL", url, "The database, as the owner of its tables")->required();
  command.add_option("ROLE", role, "A role of the database's server")->required();
  command
      .add_option("--as", as,
                  "reader: reads the archive; worker: judges what it claims, and reads nothing "
                  "else; controller: queues work, and records; none: takes all rights back")
      ->required()
      ->check(CLI::IsMember({"reader", "worker", "controller", "none"}));
  command.add_option("--queued-max", queued_max, "Most works that it may have queued; 0: any")
      ->capture_default_str()
      ->check(Between(int64_t{0}, int64_t{1'000'000'000}));
  command
      .add_option("--claimed-max", claimed_max, "Most of its works that are judged at once; 0: any")
      ->capture_default_str()
      ->check(Between(int64_t{0}, int64_t{1'000'000'000}));
  command.footer(
      "The tables of the archive and of the queue are made where they are missing.\n\n"
      "Example:\n  assay archive grant postgresql://owner@db/assay pilots --as worker");
}

}  // namespace assay
