// A verdict: both gates, what they rest on, the source, and how to judge it again. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "serve/spot_checks.h"
#include "serve/types.h"
#include "web/layout.h"

namespace assay {

struct VerdictView {
  Verdict verdict;
  std::string author;  // empty: not known
  Role role = Role::kStudent;
  std::string runner;             // that judged it; empty: not known
  bool of_own_runner = false;     // the author's, which no mentor promoted
  int64_t job = 0;                // 0: none
  std::string source;             // empty: not kept, or hidden
  std::string hidden_until;       // a deadline, ISO 8601: the source is hidden until then
  std::string machine_code = {};  // as text; empty: not kept
  std::string server = {};        // "https://assay.example.org", for commands
  std::string best_other = {};    // id of the best other verdict on the same; may be empty
  std::vector<BoardEntry> on_devices = {};  // the same candidate, on each device model
  bool may_rejudge = false;                 // the viewer may ask this server for it
  std::optional<SpotCheck> check = {};      // somebody else's judgement of the same
};

std::string RenderVerdictPage(const VerdictView& view, PageFrame frame);

// The roofline of verdicts with their labels, with its table; empty: none has one.
struct LabelledVerdict {
  std::string label;
  const Verdict* verdict = nullptr;
};
Html RooflineFigure(std::span<const LabelledVerdict> verdicts, std::string_view id);

// A candidate's kernels: registers, occupancy, instructions; may be empty.
Html KernelSection(const Verdict& verdict);

}  // namespace assay
