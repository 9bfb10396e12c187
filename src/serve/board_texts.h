// Texts that were written of the board, such as pages, for the next who asks. A board of hundreds
// of players takes longer to write than to send.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "serve/ranking.h"

namespace assay {

class BoardTexts {
 public:
  static constexpr size_t kTextsMax = 256;

  explicit BoardTexts(size_t bytes_max = size_t{32} << 20) : bytes_max_(bytes_max) {}

  // Null: it is not kept.
  std::shared_ptr<const std::string> Find(const std::string& name, const BoardQuery& query);
  // Drops those that were asked for least lately, so that all have at most `bytes_max`, and are at
  // most `kTextsMax`. A text that is larger than all may be is given, but not kept.
  std::shared_ptr<const std::string> Keep(const std::string& name, const BoardQuery& query,
                                          std::string text);
  void Clear();

 private:
  struct Kept {
    std::string name;
    BoardQuery query;
    std::shared_ptr<const std::string> text;
  };

  size_t bytes_max_, bytes_ = 0;
  std::list<Kept> kept_;  // asked for last: first
};

}  // namespace assay
