// The effect of kernels swapped into a model: a line a kernel, and the errors layer by layer. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "studies/candidate_study.h"
#include "swap/manifest.h"

namespace assay {

// A place's part of the time of a call: how much longer a call takes with its work done twice.
struct PartTime {
  double before_ns = 0, after_ns = 0;
};

// One swap: the model with this kernel, and those of the lines before, against PyTorch.
struct SwapLine {
  std::string place, title, kernel;
  std::optional<Verdict> verdict;  // nullopt: not judged
  std::optional<PartTime> part;    // nullopt: not measured, or lost in the noise
  // Of the whole, from the line before to this one, as factors; 0: not known.
  double predicted = 0, measured = 0;
  double share_before = 0;  // of the line before's time; 0: not known
};

struct ModelReport {
  std::string title, problem, size, settings, device, machine;  // settings: "LAYERS=4"
  int64_t tokens = 1;                                           // of a call
  std::optional<Verdict> plain;                                 // on a GPU: with no kernel swapped
  double base_ns = 0;  // of a call before all swaps, as the parts were measured; 0: unknown
  std::vector<SwapLine> lines;
  std::vector<OutputError> errors;  // of the first result, then of each layer; empty: not measured

  // The verdict on the model with the most kernels; nullptr: none was judged.
  const Verdict* Last() const;
};

// Fills `predicted`, `measured` and `share_before` of the lines.
void AddGains(ModelReport* report);

// The layer, or result, whose error is largest beside the reference's own; nullptr: none is known.
const OutputError* WorstError(const ModelReport& report);
// "layer 3" of "out3"; "logits" of "out".
std::string NameOfSum(const std::string& output);

// A document assay.model/1 (docs/model.schema.json).
std::string ReportToJson(const ModelReport& report);
// Returns what the model was judged at: settings, a named size, or else the problem's name.
std::string SettingsOf(const ModelReport& report);
// Text for a terminal.
std::string RenderModelReport(const ModelReport& report, bool unicode);
// The picture of where the time goes, for light and dark pages.
std::string RenderModelSvg(const ModelReport& report);

}  // namespace assay
