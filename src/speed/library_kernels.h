// Whose kernels a candidate's calls run on a GPU: its own, which its build left in its artifact, or
// those of libraries. By name, as CUPTI says from inside of the candidate's process: a report and,
// where a problem forbids libraries, a rule; code under another name escapes it.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "builders/build_candidate.h"
#include "model/verdict.h"
#include "wire/types.h"

namespace assay {

// Tells the candidate's own work on a GPU from that of libraries.
class OwnKernels {
 public:
  // `candidate` must stay.
  explicit OwnKernels(const BuiltCandidate& candidate);
  // `name` as CUPTI gives it: mangled.
  bool Has(std::string_view name) const;

 private:
  const BuiltCandidate& candidate_;
  std::set<std::string, std::less<>> compiled_;
};

// The library that a kernel of this name is known to be of; empty: none that is known.
std::string_view LibraryOf(std::string_view kernel);

// Returns the message of a failed trace, made safe to print.
std::string TraceFailure(const wire::KernelTrace& trace);

// Shares of the time of all kernels in `trace`, a copy of what a host wrote: nothing of it is
// trusted. What is neither the candidate's nor a known library's, such as what was generated as it
// ran, has its own name.
LibraryTime LibraryTimeOf(const wire::KernelTrace& trace, const OwnKernels& own);

}  // namespace assay
