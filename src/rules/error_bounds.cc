#include "rules/error_bounds.h"

#include <algorithm>

#include "base/check.h"

namespace assay {
namespace {

struct ClassConstants {
  double norm_factor;       // times u
  double element_factor;    // times u
  double reference_factor;  // times the reference's error
  double ill_from;          // reference error, in u, from which a draw is ill-conditioned...
  double ill_factor;        // ...and the factor of the reference's error there
  double few_factor;        // times norm_factor and element_factor for outputs of a few elements
};

// float32: 512 u lies between the two things that it must separate: 107 u, the worst of the honest
// programs (a naive layer norm of 65536 terms), and 3000 u, one rounding to tf32 or float16. The
// reference's own error counts 32 times: a sequential reference of 65536 terms (76 u) still keeps a
// tf32 product (5000 u) apart. On ill-conditioned draws (the mean of 1000 +- 0.1 taken away) a
// naive mean is 23 times worse than PyTorch's, E[x^2] - mean^2 50,000 times.
//
// float64 has no finer oracle: its own error is unknown, and float32 is 2^29 away, so the bound
// sits at 2^20 u.
//
// Half precisions are 8 apart: one rounding shows 0.41 u and one to the next class 3.3 u, so the
// bound sits at 2 u.
constexpr ClassConstants kFloat64Constants{0x1p20, 0x1p20, 32, 256, 128, 1};
constexpr ClassConstants kFloat32Constants{512, 512, 32, 256, 128, 4};
constexpr ClassConstants kHalfConstants{2, 8, 2, 4, 8, 1};

// Share of the reference's error, scaled to a coarser class, that a candidate of that class may
// add.
constexpr double kScaledReferenceFactor = 1.0 / 8;

// Outputs with fewer elements than this have no crowd over which a luckily small truth evens out.
constexpr int64_t kFewElements = 16;

const ClassConstants& Constants(PrecisionClass precision) {
  switch (precision) {
    case PrecisionClass::kFloat64:
      return kFloat64Constants;
    case PrecisionClass::kFloat32:
      return kFloat32Constants;
    default:
      return kHalfConstants;
  }
}

ErrorBounds NativeBounds(PrecisionClass native, const ReferenceError& error, double few) {
  const ClassConstants& constants = Constants(native);
  const double u = UnitRoundoff(native);
  const bool ill = error.norm_relative > constants.ill_from * u;
  const double reference = ill ? constants.ill_factor : constants.reference_factor;
  return {few * constants.norm_factor * u + reference * error.norm_relative,
          few * constants.element_factor * u + reference * error.element_relative};
}

}  // namespace

PrecisionClass NextCoarser(PrecisionClass precision) {
  switch (precision) {
    case PrecisionClass::kFloat64:
      return PrecisionClass::kFloat32;
    case PrecisionClass::kFloat32:
      return PrecisionClass::kTf32;
    case PrecisionClass::kTf32:
      return PrecisionClass::kBFloat16;
    default:
      return PrecisionClass::kExact;
  }
}

ErrorBounds BoundsFor(PrecisionClass precision, PrecisionClass native, const ReferenceError& error,
                      int64_t count) {
  ASSAY_CHECK(native != PrecisionClass::kExact && precision != PrecisionClass::kExact);
  ASSAY_CHECK(precision >= native);
  const auto few_for = [count](PrecisionClass level) {
    return count < kFewElements ? Constants(level).few_factor : 1.0;
  };
  ErrorBounds bounds = NativeBounds(native, error, few_for(native));
  for (PrecisionClass level = native; level != precision;) {
    level = NextCoarser(level);
    const ClassConstants& constants = Constants(level);
    const double u = UnitRoundoff(level);
    const double scaled = kScaledReferenceFactor * u / UnitRoundoff(native);
    bounds.norm = std::max(
        bounds.norm, few_for(level) * constants.norm_factor * u + scaled * error.norm_relative);
    bounds.element = std::max(bounds.element, few_for(level) * constants.element_factor * u +
                                                  scaled * error.element_relative);
  }
  const double element_max =
      IsScattered(error.norm_relative, native) ? kScatteredElementMax : kBoundMax;
  return {std::min(bounds.norm, kBoundMax), std::min(bounds.element, element_max)};
}

bool IsScattered(double norm_relative, PrecisionClass native) {
  return norm_relative > std::max(kScatteredFrom, kScatteredFromRoundoffs * UnitRoundoff(native));
}

}  // namespace assay
