#include "pipeline/builds.h"

#include <algorithm>
#include <utility>

#include "pipeline/machine.h"

namespace assay {

Builds::Builds(std::vector<const CandidateSource*> sources, Function build)
    : sources_(std::move(sources)), build_(std::move(build)), promises_(sources_.size()) {
  for (auto& promise : promises_) futures_.push_back(promise.get_future());
  const size_t workers = std::min(sources_.size(), UsableCpus().size());
  for (size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { Work(); });
}

void Builds::Work() {
  for (size_t index; (index = next_++) < sources_.size();)
    promises_[index].set_value(build_(*sources_[index]));
}

}  // namespace assay
