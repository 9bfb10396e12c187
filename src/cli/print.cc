#include "cli/print.h"

#include <cstdio>

namespace assay {

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace assay
