// Traces the program's time, for its developers. With ASSAY_TRACE=FILE in the environment every
// span is appended to FILE as one event of the trace event format; Perfetto and chrome://tracing
// show it, bench/trace_summary.py adds it up. Otherwise a span costs one branch. Any thread may
// trace. Failed writes are ignored.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace assay {

// Returns true if ASSAY_TRACE names a file that could be opened.
bool Traced();
// Traces the time from `begin_ns` to `end_ns` (CLOCK_MONOTONIC). `lane`: a row of the picture; 0:
// that of the calling thread.
void AddSpan(std::string_view name, int64_t begin_ns, int64_t end_ns, int lane = 0);

// Traces its own lifetime. `name` must outlive it.
class Span {
 public:
  explicit Span(std::string_view name) : name_(name), begin_ns_(Traced() ? MonotonicNs() : 0) {}
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (begin_ns_ != 0) AddSpan(name_, begin_ns_, MonotonicNs());
  }

 private:
  std::string_view name_;
  int64_t begin_ns_;
};

}  // namespace assay
