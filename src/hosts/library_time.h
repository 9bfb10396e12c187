// Measures a running process's time by shared library. The judge stops the process at moments that
// it cannot foresee and looks up each running thread's instruction in the memory map. The result is
// a report and, where a problem forbids libraries, a rule; code under another name escapes it.
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
  std::string name;  // the file's name without folder; empty: no file
};
std::vector<CodeRange> ParseCodeRanges(std::string_view maps);

// Name of the libraries that generate their code at run time.
inline constexpr const char* kGeneratedCode = "code generated as it runs";

// Returns true if a library of this name is neither the candidate, Assay's host, the interpreter,
// nor a run-time library of the language.
bool IsForeignLibrary(std::string_view name);

// Counts samples of one process.
class LibraryClock {
 public:
  // Counts the threads that were running. Every thread of the process must be stopped.
  void Sample(pid_t pid);
  void Count(uint64_t address, const std::vector<CodeRange>& ranges);
  LibraryTime Time() const;

 private:
  std::map<std::string, int64_t> samples_;
};

}  // namespace assay
