// A class as one file: a gzipped tar that people can read without Assay, and that another server
// imports. It has class.json, the rubric, the sheet, each worklog as a folder with its marks, and
// the sources and verdicts of all jobs. It has no token and no invitation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "serve/class_rules.h"
#include "serve/grades.h"
#include "serve/tar.h"

namespace assay {

inline constexpr size_t kClassFileBytesMax = size_t{64} << 20;  // as it is sent
inline constexpr TarLimits kClassFileLimits{.files_max = 200'000, .bytes_max = size_t{512} << 20};

struct ClassFileJob {
  int64_t id = 0;  // where it was made
  std::string author, kind, state, problem, size, settings, name;
  std::string source, opponent, opponent_name, needs;  // the first two are hashes
  int64_t made_s = 0, ended_s = 0, attempts = 0;
  std::string outcome, verdict, failure;
  bool own_runner = false;  // of the author's: the verdict counts nowhere
};

struct ClassFileUpload {
  int64_t time_s = 0;
  std::string tar;  // hash
};

struct ClassFileWorklog {
  std::string author, worklog, problem;
  std::vector<ClassFileUpload> uploads;  // never empty
  std::vector<KeptMarks> marks;
};

struct ClassFileFinalist {
  std::string author, board;
  int64_t best = 0, job = 0;  // ids of jobs
};

struct ClassFile {
  Class of;
  int64_t exported_s = 0;
  std::vector<Account> members;
  std::vector<std::string> mentors;  // who gave marks and are no members
  std::vector<ClassFileJob> jobs;    // that have ended
  int64_t jobs_left_out = 0;         // that had not
  std::vector<ClassFileWorklog> worklogs;
  std::vector<ClassFileFinalist> finalists;
  std::map<std::string, std::string> blobs;     // sources and tars, by their hash
  std::map<std::string, std::string> verdicts;  // JSON, by id
};

Result<std::string> WriteClassFile(const ClassFile& file, const std::string& sheet,
                                   const TarLibrary& tars);
// Errors (kUsage): it is no such file, or something in it was changed or is missing.
Result<ClassFile> ReadClassFile(std::string_view bytes, const TarLibrary& tars);

}  // namespace assay
