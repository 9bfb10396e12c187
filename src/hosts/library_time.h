// Where a running process spends its time, by shared library: it is stopped at moments that it
// cannot foresee, and the instruction that each running thread stood at is looked up in its memory
// map. A report and, where a problem forbids libraries, a rule; code under another name escapes it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/verdict.h"

namespace assay {

// An executable mapping, as /proc/PID/maps lists it.
struct CodeRange {
  uint64_t begin = 0, end = 0;
  std::string name;  // the file's last part; empty: no file
};
std::vector<CodeRange> ParseCodeRanges(std::string_view maps);

// Stands for the libraries whose code has no name, since they write it as they run.
inline constexpr const char* kGeneratedCode = "code generated as it runs";

// Whether a library of this name is the work of others: not the candidate, Assay's own host, the
// interpreter, or the run-time libraries of the language.
bool IsForeignLibrary(std::string_view name);

// Counts samples of one process.
class LibraryClock {
 public:
  // Every thread of the process is stopped; those that were running count.
  void Sample(pid_t pid);
  void Count(uint64_t address, const std::vector<CodeRange>& ranges);
  LibraryTime Time() const;

 private:
  std::map<std::string, int64_t> samples_;
};

}  // namespace assay
