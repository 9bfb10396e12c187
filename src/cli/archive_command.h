// assay archive: the subcommands that look at what was recorded.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace assay {

struct ArchiveVerifyOptions {
  std::string archive;  // file; empty: the default

  void AddTo(CLI::App& command);
};

struct ArchiveListOptions {
  std::string archive, problem, outcome, kind;
  int64_t limit = 20;

  void AddTo(CLI::App& command);
};

struct ArchiveShowOptions {
  std::string archive, hash;
  bool tree = false;
  bool feedback = false;  // in place of the record: what a prompt would say of the verdict

  void AddTo(CLI::App& command);
};

struct ArchiveDiffOptions {
  std::string archive, before, after;

  void AddTo(CLI::App& command);
};

struct ArchiveExportOptions {
  std::string archive, file;
  std::string as;  // a kind of dataset; empty: all records
  std::string formula = "fast", licence;
  double p = 1, test_share = 0.1;

  void AddTo(CLI::App& command);
};

struct ArchiveCopyOptions {
  std::string from, to;

  void AddTo(CLI::App& command);
};

struct ArchiveGrantOptions {
  std::string url, role, as;
  int64_t queued_max = 0, claimed_max = 0;  // 0: not limited

  void AddTo(CLI::App& command);
};

int RunArchiveVerify(const ArchiveVerifyOptions& options);
int RunArchiveList(const ArchiveListOptions& options);
int RunArchiveShow(const ArchiveShowOptions& options);
int RunArchiveDiff(const ArchiveDiffOptions& options);
int RunArchiveExport(const ArchiveExportOptions& options);
int RunArchiveCopy(const ArchiveCopyOptions& options);
int RunArchiveGrant(const ArchiveGrantOptions& options);

}  // namespace assay
