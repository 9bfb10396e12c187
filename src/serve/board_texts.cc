#include "serve/board_texts.h"

#include <algorithm>
#include <utility>

namespace assay {

std::shared_ptr<const std::string> BoardTexts::Find(const std::string& name,
                                                    const BoardQuery& query) {
  const auto found = std::ranges::find_if(
      kept_, [&](const Kept& each) { return each.name == name && each.query == query; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return found->text;
}

std::shared_ptr<const std::string> BoardTexts::Keep(const std::string& name,
                                                    const BoardQuery& query, std::string text) {
  auto shared = std::make_shared<const std::string>(std::move(text));
  if (shared->size() > bytes_max_) return shared;
  bytes_ += shared->size();
  kept_.push_front({name, query, shared});
  while (bytes_ > bytes_max_ || kept_.size() > kTextsMax) {
    bytes_ -= kept_.back().text->size();
    kept_.pop_back();
  }
  return shared;
}

void BoardTexts::Clear() {
  kept_.clear();
  bytes_ = 0;
}

}  // namespace assay
