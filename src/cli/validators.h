// Checks of options' numbers. CLI11's own print both ends of a range with all their digits, and let
// NaN pass.
#pragma once

namespace CLI {
class Validator;
}

namespace assay {

CLI::Validator AboveZero();
// Of int, int64_t or double.
template <typename Number>
CLI::Validator Between(Number low, Number high);

}  // namespace assay
