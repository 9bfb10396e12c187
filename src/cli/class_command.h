// assay class: a class on a server, and assay worklog submit: a member's worklog goes there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"

namespace assay {

// --server and --token-file.
struct ServerPlace {
  std::string server, token_file;

  void AddTo(CLI::App& command);
};

struct ClassMakeOptions {
  ServerPlace place;
  std::string name, deadline, rubric;
  int64_t jobs_a_day = 100, worklogs_a_day = 20, students = 0;
  bool json = false;

  void AddTo(CLI::App& command);
};

struct ClassInviteOptions {
  ServerPlace place;
  int64_t id = 0, uses = 1;
  std::string role = "student", lasts = "30d", member;
  bool json = false;

  void AddTo(CLI::App& command);
};

struct ClassShowOptions {
  ServerPlace place;
  int64_t id = 0;  // 0: all classes

  void AddTo(CLI::App& command);
};

struct ClassSheetOptions {
  ServerPlace place;
  int64_t id = 0;
  std::string out;  // empty: stdout

  void AddTo(CLI::App& command);
};

struct ClassExportOptions {
  ServerPlace place;
  int64_t id = 0;
  std::string out;

  void AddTo(CLI::App& command);
};

struct ClassImportOptions {
  ServerPlace place;
  std::string file;
  bool json = false;

  void AddTo(CLI::App& command);
};

struct WorklogSubmitOptions {
  ServerPlace place;
  std::string folder = ".";
  bool json = false;

  void AddTo(CLI::App& command);
};

int RunClassMake(const ClassMakeOptions& options);
int RunClassInvite(const ClassInviteOptions& options);
int RunClassShow(const ClassShowOptions& options);
int RunClassSheet(const ClassSheetOptions& options);
int RunClassExport(const ClassExportOptions& options);
int RunClassImport(const ClassImportOptions& options);
int RunWorklogSubmit(const WorklogSubmitOptions& options);

}  // namespace assay
