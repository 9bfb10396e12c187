// The definition that every program links except the tests' `assay-weakened`.
#include "base/defences.h"

#include <cstdlib>

namespace assay {

bool Stands(Defence /*defence*/) { return true; }

std::optional<std::string> RefusalToWeaken() {
  if (std::getenv("ASSAY_WEAKEN") == nullptr) return std::nullopt;
  return "ASSAY_WEAKEN is set, and the defences of this program cannot be taken away: unset it";
}

}  // namespace assay
