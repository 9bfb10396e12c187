// The last line of a rendered report: a hash over all before it, by which an edit shows. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Returns the text with its seal. `subject`: a hash of what it was rendered from; may be empty.
std::string WithSeal(std::string text, std::string_view subject);

struct Seal {
  bool whole = false;   // the text is what was rendered
  std::string subject;  // as given to WithSeal
};
Seal ReadSeal(std::string_view text);

}  // namespace assay
