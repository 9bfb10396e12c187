#include "rules/plain_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "rules/elements.h"

namespace assay {
namespace {

// Elements of one kind: how many, and the first one's flat index.
struct Found {
  int64_t count = 0, first = 0;

  void Add(int64_t index) {
    if (count++ == 0) first = index;
  }
};

std::span<const std::byte> Bytes(const OutputView& output, const void* data) {
  return {static_cast<const std::byte*>(data),
          static_cast<size_t>(output.count) * wire::ElementBytes(output.dtype)};
}

Found Unwritten(const OutputView& output, std::byte poison) {
  const size_t width = wire::ElementBytes(output.dtype);
  const std::span<const std::byte> written = Bytes(output, output.candidate);
  const auto is_poison = [poison](std::byte byte) { return byte == poison; };
  Found found;
  if (width == 1 && output.dtype != DType::kBool &&
      (!std::all_of(written.begin(), written.end(), is_poison) ||
       std::ranges::equal(written, Bytes(output, output.reference))))
    return found;
  for (size_t i = 0; i < static_cast<size_t>(output.count); ++i) {
    const auto element = written.subspan(i * width, width);
    if (std::all_of(element.begin(), element.end(), is_poison)) found.Add(static_cast<int64_t>(i));
  }
  return found;
}

Found NonFinite(const OutputView& output) {
  Found found;
  if (CountNonFinite(output.dtype, output.candidate, output.count) == 0) return found;
  for (int64_t i = 0; i < output.count; ++i)
    if (!std::isfinite(LoadOne(output.dtype, output.candidate, i))) found.Add(i);
  return found;
}

std::string Sentence(const OutputView& output, const Found& found, std::string_view what) {
  return fmt::format("{} of the {} elements of {} {}, the first at [{}]", found.count, output.count,
                     output.name, what, fmt::join(Position(output.shape, found.first), ", "));
}

}  // namespace

std::optional<Hint> PlainFault(const OutputView& output, std::byte poison) {
  if (output.count == 0) return std::nullopt;
  if (const Found found = Unwritten(output, poison); found.count > 0)
    return Hint{Sentence(output, found, "were never written"), Mistake::kNotWritten};
  if (!IsFloatingPoint(output.dtype) ||
      CountNonFinite(output.dtype, output.reference, output.count) > 0)
    return std::nullopt;
  if (const Found found = NonFinite(output); found.count > 0)
    return Hint{
        Sentence(output, found, "are NaN or infinite") + "; the reference has finite ones alone",
        Mistake::kNanOrInfinity};
  return std::nullopt;
}

}  // namespace assay
