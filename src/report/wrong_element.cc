#include "report/wrong_element.h"

#include <fmt/format.h>

#include <cmath>

namespace assay {
namespace {

constexpr int kDigitsOfDouble = 17;

std::string TextOf(double value, int digits) {
  // The sign of a NaN says nothing.
  return std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits);
}

}  // namespace

ElementTexts TextsOf(const Mismatch& mismatch, int digits) {
  if (mismatch.whole)
    return {fmt::format("{}", mismatch.whole->expected), fmt::format("{}", mismatch.whole->got)};
  ElementTexts texts;
  do {
    texts = {TextOf(mismatch.expected, digits), TextOf(mismatch.got, digits)};
  } while (texts.expected == texts.got && mismatch.expected != mismatch.got &&
           ++digits <= kDigitsOfDouble);
  return texts;
}

}  // namespace assay
