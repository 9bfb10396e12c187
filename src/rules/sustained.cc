#include "rules/sustained.h"

#include "base/check.h"
#include "base/median.h"

namespace assay {

double SustainedCallNs(const std::vector<int64_t>& block_ns, int calls) {
  ASSAY_CHECK(!block_ns.empty() && calls > 0);
  const auto later = block_ns.begin() + static_cast<std::ptrdiff_t>(block_ns.size() / 2);
  return Median({later, block_ns.end()}) / calls;
}

}  // namespace assay
