#include "model/event.h"

namespace assay {

std::string_view JudgeStageName(JudgeStage stage) {
  switch (stage) {
    case JudgeStage::kStarting:
      return "starting";
    case JudgeStage::kDrawing:
      return "drawing";
    case JudgeStage::kBuilding:
      return "building";
    case JudgeStage::kCorrectness:
      return "correctness";
    case JudgeStage::kSpeed:
      return "speed";
    case JudgeStage::kSustained:
      return "sustained";
    case JudgeStage::kTools:
      return "tools";
  }
  return "unknown";
}

}  // namespace assay
