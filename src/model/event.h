// Events of a running judgement.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

enum class JudgeStage { kStarting, kDrawing, kBuilding, kCorrectness, kSpeed, kSustained, kTools };

// Returns the name in events and logs: "starting", "drawing", "building", "correctness", "speed",
// "sustained", "tools".
std::string_view JudgeStageName(JudgeStage stage);

struct ProgressEvent {
  JudgeStage stage = JudgeStage::kStarting;
  std::string text;       // for people: "speed: 3 of 3 pairs over 1.01x"
  double fraction = 0;    // of the stage, 0 to 1
  size_t candidate = 0;   // number of the candidate in hand, from 0; unused if `candidates` is 0
  size_t candidates = 0;  // of the batch; 0: the stage belongs to no single candidate
};

struct JudgeEvents {
  std::function<void(const ProgressEvent&)> progress = [](const ProgressEvent&) {};
  // A word on what is to come, once, before it begins: that it takes long, and what shortens it.
  std::function<void(const std::string&)> notice = [](const std::string&) {};
  // All candidates of the batch are built: what follows leaves cores free.
  std::function<void()> built = [] {};
  // Gets each verdict as soon as it stands, in the order of the candidates.
  std::function<void(const Verdict&)> verdict = [](const Verdict&) {};
  // In place of its verdict: a candidate needs what this machine lacks. Names the candidate.
  std::function<void(const Error&)> unjudged = [](const Error&) {};
  // In place of its verdict, where that was asked for: the artifact with this hash has one already.
  std::function<void(const std::string& artifact)> known = [](const std::string&) {};
};

}  // namespace assay
