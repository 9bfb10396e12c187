// What a judgement tells while it goes on.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "model/verdict.h"

namespace assay {

enum class JudgeStage { kStarting, kDrawing, kBuilding, kCorrectness, kSpeed, kSustained, kTools };

// As events and logs name it: "starting", "drawing", "building", "correctness", "speed",
// "sustained", "tools".
std::string_view JudgeStageName(JudgeStage stage);

struct ProgressEvent {
  JudgeStage stage = JudgeStage::kStarting;
  std::string text;       // for people: "speed (gate 2): pair 3, 1.2x so far"
  double fraction = 0;    // of the stage, 0 to 1
  size_t candidate = 0;   // in hand, from 0; of no meaning where `candidates` is 0
  size_t candidates = 0;  // of the batch; 0: the stage is of no one candidate
};

struct JudgeEvents {
  std::function<void(const ProgressEvent&)> progress = [](const ProgressEvent&) {};
  // Each verdict as soon as it stands, in the order of the candidates.
  std::function<void(const Verdict&)> verdict = [](const Verdict&) {};
};

}  // namespace assay
