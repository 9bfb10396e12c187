#include "base/dotted_keys.h"

namespace assay {

int LineWithTooManyDots(std::string_view text) {
  int line = 1, dots = 0;
  for (const char c : text) {
    if (c == '.' && ++dots > kLineDotsMax) return line;
    if (c != '\n') continue;
    ++line;
    dots = 0;
  }
  return 0;
}

}  // namespace assay
