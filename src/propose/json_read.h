// Reads members of a stranger's JSON, which may be of any kind. For the .cc files of protocols.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "propose/models.h"
#include "propose/proposer.h"

namespace assay {

// Returns the member, or nullptr where `object` is no object or lacks it.
template <typename Json>
const Json* Member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

template <typename Json>
std::string TextIn(const Json& object, const char* name) {
  const Json* member = Member(object, name);
  return member != nullptr && member->is_string() ? member->template get<std::string>() : "";
}

// 0 where it is missing, no number, or negative.
template <typename Json>
double NumberIn(const Json& object, const char* name) {
  const Json* member = Member(object, name);
  const double number =
      member != nullptr && member->is_number() ? member->template get<double>() : 0;
  return std::isfinite(number) && number > 0 ? number : 0;
}

template <typename Json>
int64_t CountIn(const Json& object, const char* name) {
  return static_cast<int64_t>(std::min(NumberIn(object, name), 1e15));
}

inline int64_t TokensAsked(const Prompt& prompt, const ModelFacts& facts) {
  return facts.answer_tokens_max > 0 ? std::min(prompt.answer_tokens_max, facts.answer_tokens_max)
                                     : prompt.answer_tokens_max;
}

}  // namespace assay
