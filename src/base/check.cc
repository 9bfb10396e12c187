#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace assay {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "assay: bug: CHECK(%s) failed at %s:%d; please report it\n", condition, file,
               line);
  std::_Exit(70);
}

}  // namespace assay
