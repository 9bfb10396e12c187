// Verdicts that stand, by all that they depend on, so that a source which comes again is not judged
// again. Pure.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "model/verdict.h"

namespace assay {

class VerdictCache {
 public:
  explicit VerdictCache(size_t verdicts_max = 4096) : verdicts_max_(verdicts_max) {}

  // source x task x toolchain x device, as texts.
  static std::string Key(const std::string& source, const std::string& task,
                         const std::string& toolchain, const std::string& device);
  const Verdict* Find(const std::string& key) const;  // null: none
  // Keeps it without its samples, in place of the oldest one if there are too many. A verdict that
  // stayed open is not kept: a second judgement may decide.
  void Keep(const std::string& key, const Verdict& verdict);

 private:
  const size_t verdicts_max_;
  std::map<std::string, Verdict> verdicts_;
  std::deque<std::string> order_;  // oldest first
};

}  // namespace assay
