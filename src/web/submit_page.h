// The form that submits a candidate. Pure.
#pragma once

#include <string>
#include <vector>

#include "web/layout.h"

namespace assay {

struct SubmitChoice {
  std::string problem;
  std::vector<std::string> sizes;
  std::vector<std::string> too_large = {};  // of these: no runner that is here takes them
};

struct SubmitView {
  std::vector<SubmitChoice> problems;
  // As first shown, or as sent and refused.
  std::string problem, size, name, source, against;
  std::string fault;          // why it was refused; may be empty
  std::string over = {};      // why nothing may be submitted, such as a deadline; may be empty
  int64_t left_today = -1;    // submissions; negative: no quota
  std::string deadline = {};  // ISO 8601; empty: none
  int64_t queued = 0;
  int64_t source_bytes_max = 1 << 20;
};

std::string RenderSubmitPage(const SubmitView& view, PageFrame frame);

}  // namespace assay
