#include "search/verdict_cache.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace assay {

std::string VerdictCache::Key(const std::string& source, const std::string& task,
                              const std::string& toolchain, const std::string& device) {
  std::string text;
  // With their lengths: no two lists of parts have one text.
  for (const std::string* part : {&source, &task, &toolchain, &device})
    text += fmt::format("{}:{}", part->size(), *part);
  return Sha256Hex(text);
}

const Verdict* VerdictCache::Find(const std::string& key) const {
  const auto found = verdicts_.find(key);
  return found == verdicts_.end() ? nullptr : &found->second;
}

void VerdictCache::Keep(const std::string& key, const Verdict& verdict) {
  if (verdict.outcome == Outcome::kUnsettled || verdicts_max_ == 0) return;
  const auto [place, fresh] = verdicts_.insert_or_assign(key, verdict);
  place->second.samples.clear();
  if (!fresh) return;
  order_.push_back(key);
  if (order_.size() <= verdicts_max_) return;
  verdicts_.erase(order_.front());
  order_.pop_front();
}

}  // namespace assay
