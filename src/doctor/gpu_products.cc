#include "doctor/gpu_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

namespace assay {
namespace {

constexpr int kRowBytes = 128;  // of an operand, along k
constexpr int kRows = 128;      // of A and of a block's results

// A sign, exponent bits with the usual bias, mantissa bits, and zeroes below.
struct Format {
  int bytes, exponent_bits, mantissa_bits;
};
constexpr Format kFloat16{2, 5, 10}, kBFloat16{2, 8, 7}, kTf32{4, 8, 10}, kFloat8{1, 4, 3},
    kFloat64{8, 11, 52};

struct Product {
  const char* kernel;
  const char* rate;  // its name in the ceilings
  Format format;
  std::string_view instruction;
};

// Kernels (const void* a, const void* b, float* out, int rounds) of one source: each block adds
// A B^T to its own results, kRows x columns, so many times.
struct Family {
  const char* file;
  const char* name;
  int columns;  // rows of B
  unsigned blocks_per_multiprocessor;
  std::vector<Product> products;
};

Family Wgmma() {
  return {"ceiling_wgmma.cu",
          "wgmma",
          256,
          1,
          {{"assay_wgmma_float16", "tensor_float16", kFloat16, "wgmma m64n256k16"},
           {"assay_wgmma_bfloat16", "tensor_bfloat16", kBFloat16, "wgmma m64n256k16"},
           {"assay_wgmma_tf32", "tensor_tf32", kTf32, "wgmma m64n256k8"},
           {"assay_wgmma_float8", "tensor_float8", kFloat8, "wgmma m64n256k32"}}};
}

Family MmaSync(int architecture) {
  Family family{"ceiling_matrix.cu",
                "mma.sync",
                64,
                2,
                {{"assay_mma_float16", "tensor_float16", kFloat16, "mma.sync m16n8k16"},
                 {"assay_mma_bfloat16", "tensor_bfloat16", kBFloat16, "mma.sync m16n8k16"},
                 {"assay_mma_tf32", "tensor_tf32", kTf32, "mma.sync m16n8k8"},
                 {"assay_mma_float64", "tensor_float64", kFloat64,
                  architecture >= 90 ? "mma.sync m16n8k16" : "mma.sync m8n8k4"}}};
  // sm_90 has no such instruction of its own: its compiler converts to float16.
  if (architecture >= 89 && architecture != 90)
    family.products.push_back({"assay_mma_float8", "tensor_float8", kFloat8, "mma.sync m16n8k32"});
  return family;
}

// "sm_90a" -> 90.
int NumberOf(const std::string& architecture) {
  return architecture.starts_with("sm_") ? std::atoi(architecture.c_str() + 3) : 0;
}

// Values of either sign from 1/8 to 2 in one of the formats.
struct Operand {
  std::vector<unsigned char> bytes;
  std::vector<double> values;
};

Operand RandomOperand(const Format& format, int rows, std::mt19937_64& random) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int used_bits = 1 + format.exponent_bits + format.mantissa_bits;
  Operand operand;
  operand.bytes.resize(static_cast<size_t>(rows) * kRowBytes);
  for (size_t at = 0; at < operand.bytes.size(); at += static_cast<size_t>(format.bytes)) {
    const uint64_t bits = random();
    const bool negative = (bits & 1) != 0;
    const int exponent = -static_cast<int>(bits >> 1 & 3);
    const uint64_t mantissa = bits >> 8 & ((uint64_t{1} << format.mantissa_bits) - 1);
    const uint64_t encoded =
        (uint64_t{negative} << (used_bits - 1) |
         static_cast<uint64_t>(bias + exponent) << format.mantissa_bits | mantissa)
        << (8 * format.bytes - used_bits);
    std::memcpy(operand.bytes.data() + at, &encoded, static_cast<size_t>(format.bytes));
    const double value =
        std::ldexp(1 + std::ldexp(static_cast<double>(mantissa), -format.mantissa_bits), exponent);
    operand.values.push_back(negative ? -value : value);
  }
  return operand;
}

// Whether a block's results are `rounds` times A B^T, but for roundings: those of the matrix units
// are coarse, and an operand in another place is far off.
bool AreProducts(const float* results, const Operand& a, const Operand& b, int columns,
                 int rounds) {
  constexpr double kTolerance = 0.01;
  const size_t depth = a.values.size() / kRows;
  for (size_t row = 0; row < kRows; ++row)
    for (size_t column = 0; column < static_cast<size_t>(columns); ++column) {
      double sum = 0, magnitude = 0;
      for (size_t k = 0; k < depth; ++k) {
        const double term = a.values[row * depth + k] * b.values[column * depth + k];
        sum += term;
        magnitude += std::abs(term);
      }
      const double result = results[row * static_cast<size_t>(columns) + column];
      if (!(std::abs(result - rounds * sum) <= kTolerance * rounds * magnitude)) return false;
    }
  return true;
}

class MatrixUnits {
 public:
  MatrixUnits(GpuMeter& meter, const KernelImages& images, GpuCeilings* found)
      : meter_(meter), images_(images), found_(*found) {}

  // Adds the rates that are not there yet.
  Result<void> Measure(Family family) {
    std::erase_if(family.products, [this](const Product& product) {
      return found_.arithmetic.contains(product.rate);
    });
    if (family.products.empty()) return {};
    std::vector<const char*> names;
    for (const Product& product : family.products) names.push_back(product.kernel);
    const auto module = Load(family.file, names);
    if (!module) return Note(family.name, module.error());
    for (size_t i = 0; i < family.products.size(); ++i) {
      const Product& product = family.products[i];
      const std::string what = fmt::format("{} by {}", product.rate, family.name);
      if (meter_.TimeIsUp()) {
        found_.notes.push_back(what + " was not measured: time was up");
        continue;
      }
      auto rate = RateOf(family, product, module->kernel(i));
      if (rate)
        found_.arithmetic[product.rate] = std::move(*rate);
      else if (auto noted = Note(what, rate.error()); !noted)
        return noted;
    }
    return {};
  }

  Result<void> MeasurePairs() {
    const char* const names[] = {"assay_float16_pairs", "assay_bfloat16_pairs"};
    const auto module = Load("ceiling_matrix.cu", names);
    if (!module) return Note("pairs of 16 bits", module.error());
    const struct {
      const char* rate;
      uint32_t one;
    } pairs[] = {{"float16", 0x3C00}, {"bfloat16", 0x3F80}};
    for (size_t i = 0; i < std::size(pairs); ++i) {
      auto rate = PairRate(module->kernel(i), pairs[i].one);
      if (rate)
        found_.arithmetic[pairs[i].rate] = std::move(*rate);
      else if (auto noted = Note(pairs[i].rate, rate.error()); !noted)
        return noted;
    }
    return {};
  }

 private:
  Result<GpuModule> Load(const char* file, std::span<const char* const> names) const {
    ASSAY_ASSIGN_OR_RETURN(const std::string image, images_(file, names));
    return GpuModule::Load(meter_.gpu(), image, names.size());
  }

  // An interruption stays an error.
  Result<void> Note(std::string_view what, const Error& error) {
    if (error.kind == ErrorKind::kInterrupted) return std::unexpected(error);
    found_.notes.push_back(fmt::format("{} was not measured: {}", what,
                                       error.message.substr(0, error.message.find('\n'))));
    return {};
  }

  Result<DeviceRegion> Upload(const Operand& operand) const {
    const Gpu& gpu = meter_.gpu();
    ASSAY_ASSIGN_OR_RETURN(DeviceRegion region, DeviceRegion::Private(gpu, operand.bytes.size()));
    ASSAY_RETURN_IF_ERROR(
        gpu.Check(gpu.driver().copy_to_device(region.address(), operand.bytes.data(),
                                              operand.bytes.size(), nullptr),
                  "copy to the GPU"));
    ASSAY_RETURN_IF_ERROR(gpu.Synchronize());
    return region;
  }

  Result<GpuRate> RateOf(const Family& family, const Product& product, cuda::Function kernel) {
    const Gpu& gpu = meter_.gpu();
    std::mt19937_64 random(1);
    const Operand a = RandomOperand(product.format, kRows, random);
    const Operand b = RandomOperand(product.format, family.columns, random);
    const unsigned blocks = family.blocks_per_multiprocessor * meter_.multiprocessors();
    const size_t block_results = size_t{kRows} * static_cast<size_t>(family.columns);
    ASSAY_ASSIGN_OR_RETURN(const DeviceRegion a_there, Upload(a));
    ASSAY_ASSIGN_OR_RETURN(const DeviceRegion b_there, Upload(b));
    ASSAY_ASSIGN_OR_RETURN(const DeviceRegion out,
                           DeviceRegion::Private(gpu, blocks * block_results * sizeof(float)));
    const auto launch = [&](int rounds) {
      return meter_.Launch(kernel, blocks, a_there.address(), b_there.address(), out.address(),
                           rounds);
    };
    constexpr int kFewRounds = 4;
    ASSAY_RETURN_IF_ERROR(launch(kFewRounds));
    std::vector<float> results(block_results);
    for (const unsigned block : {0U, blocks - 1}) {
      ASSAY_RETURN_IF_ERROR(gpu.CopyToHost(results.data(),
                                           out.address() + block * block_results * sizeof(float),
                                           block_results * sizeof(float)));
      if (!AreProducts(results.data(), a, b, family.columns, kFewRounds))
        return EnvironmentError("its products came out wrong");
    }
    const int rounds = meter_.effort().product_rounds;
    const double depth = static_cast<double>(kRowBytes / product.format.bytes);
    const double operations = 2.0 * static_cast<double>(block_results) * depth * blocks * rounds;
    return meter_.Rate([&] { return launch(rounds); }, operations,
                       std::string(product.instruction));
  }

  // x = 1 - x, in both halves of each word.
  Result<GpuRate> PairRate(cuda::Function kernel, uint32_t one) {
    constexpr unsigned kBlocks = 8;
    constexpr uint32_t kChains = 16, kSign = 0x80008000;
    const unsigned blocks = kBlocks * meter_.multiprocessors();
    const size_t threads = size_t{blocks} * GpuMeter::kThreads;
    ASSAY_ASSIGN_OR_RETURN(const DeviceRegion out,
                           DeviceRegion::Private(meter_.gpu(), threads * sizeof(uint32_t)));
    const uint32_t ones = one << 16 | one;
    const int rounds = meter_.effort().multiply_add_rounds;
    const auto launch = [&] {
      return meter_.Launch(kernel, blocks, out.address(), ones ^ kSign, ones, rounds);
    };
    ASSAY_ASSIGN_OR_RETURN(
        GpuRate rate,
        meter_.Rate(launch, 4.0 * kChains * rounds * static_cast<double>(threads), "fma of pairs"));
    // The kernel's sum over its chains, times their numbers: those with even ones began at 1.
    uint32_t expected = 0;
    for (uint32_t i = rounds % 2 == 0 ? 0 : 1; i < kChains; i += 2) expected += ones * (i + 1);
    std::vector<uint32_t> results(threads);
    ASSAY_RETURN_IF_ERROR(
        meter_.gpu().CopyToHost(results.data(), out.address(), threads * sizeof(uint32_t)));
    for (const size_t thread : {size_t{0}, threads - 1})
      if (results[thread] != expected) return EnvironmentError("its multiply-adds came out wrong");
    return rate;
  }

  GpuMeter& meter_;
  const KernelImages& images_;
  GpuCeilings& found_;
};

}  // namespace

Result<void> AddProducts(GpuMeter& meter, const KernelImages& images, GpuCeilings* found) {
  constexpr int kOldest = 80;
  const int architecture = NumberOf(found->architecture);
  if (architecture < kOldest) {
    found->notes.push_back("matrix units older than sm_80 are not measured");
    return {};
  }
  MatrixUnits units(meter, images, found);
  // A kernel that breaks the context ends all that comes after it: the most daring come last.
  ASSAY_RETURN_IF_ERROR(units.MeasurePairs());
  if (found->architecture == "sm_90a") ASSAY_RETURN_IF_ERROR(units.Measure(Wgmma()));
  ASSAY_RETURN_IF_ERROR(units.Measure(MmaSync(architecture)));
  if (architecture >= 100)
    found->notes.push_back(
        "the matrix units of this architecture reach more by tcgen05, which is not measured");
  return {};
}

}  // namespace assay
