// Live progress on stderr: one line with a bar, redrawn in place, for terminals only. Off a
// terminal nothing, or with `verbose` one plain line a stage. It draws inside Update alone: no
// thread of its own wakes up during a timed block.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "report/terminal.h"

namespace assay {

struct ProgressOptions {
  int fd = 2;         // borrowed; must stay open as long as the Progress
  Terminal terminal;  // of that descriptor
  bool verbose = false;
  std::function<int64_t()> now_ns = MonotonicNs;
};

// Safe to use from several threads. Errors of writing are ignored: progress is never worth a
// judgement.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // clears
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // "gate 1: draw 7 of 14", and how much of the whole is done: 0 to 1, anything else for unknown.
  // The text before the first digit names the stage: a new stage shows at once, other changes at
  // most ten times a second. Never more than ten draws in a second.
  void Update(std::string stage, double fraction);
  // Erases the line, so that results start on a clean one. Update may follow.
  void Clear();

 private:
  static constexpr int kDrawsPerSecond = 10;

  bool MayDraw(const std::string& name, int64_t now_ns);
  void Draw(const std::string& stage, double fraction);
  void Write(const std::string& text);

  const ProgressOptions options_;
  std::mutex mutex_;
  std::string stage_name_;             // guarded by mutex_, like all below
  int64_t draws_ns_[kDrawsPerSecond];  // times of the last draws, a ring
  int next_draw_ = 0;                  // oldest of them
  bool visible_ = false;
};

}  // namespace assay
