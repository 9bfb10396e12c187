// A trace of where the program's time goes, for who works on it: with ASSAY_TRACE=FILE in its
// environment every span is appended there as one event of the trace event format, which Perfetto
// and chrome://tracing show and bench/trace_summary.py adds up. Without it a span costs one branch.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace assay {

bool Traced();
// What lasted from `begin_ns` to `end_ns` (CLOCK_MONOTONIC), in a lane of its own: several threads
// may trace at once.
void AddSpan(std::string_view name, int64_t begin_ns, int64_t end_ns, int lane = 0);

// Traces the time it lives. `name` must outlive it.
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
