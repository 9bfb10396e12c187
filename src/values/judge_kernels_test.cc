// Tests the judge's kernels, compiled for the host over the fake driver, against the CPU's scan.
#include "gpu/judge_kernels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "base/files.h"
#include "rules/elements.h"
#include "rules/error_bounds.h"
#include "rules/error_scan.h"
#include "wire/write_device_image.h"

namespace assay {
namespace {

using gpu::Comparison;
using gpu::ElementType;
using gpu::Range;
using testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string FakeImage() {
  const std::string library =
      ReadFile(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/judge_kernels.so", 16 << 20).value_or("");
  std::vector<std::string> names;
  for (const char* name : JudgeKernelNames()) names.push_back(fmt::format("{}_emulated", name));
  return wire::WriteDeviceImage(names, library);
}

class JudgeKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
    auto kernels = JudgeKernels::Load(*gpu_, FakeImage());
    ASSERT_TRUE(kernels) << kernels.error().message;
    kernels_.emplace(std::move(*kernels));
  }

  JudgeKernels::Compared Compare(const Comparison& comparison) {
    const auto compared = kernels_->Compare(std::span(&comparison, 1));
    EXPECT_TRUE(compared) << compared.error().message;
    return compared ? compared->front() : JudgeKernels::Compared{};
  }

  // Measures the view's candidate against its oracle, without one against its reference.
  JudgeKernels::Measured ExpectErrorsOfTheCpu(const OutputView& view, ElementType type) {
    const MeasuredErrors cpu = ScanErrors(view);
    const gpu::TruthComparison comparison{view.candidate,
                                          view.reference,
                                          view.oracle,
                                          view.count,
                                          RowElements(view.shape, view.count),
                                          kRowScaleFloor,
                                          type,
                                          nullptr,
                                          nullptr};
    const auto measured = kernels_->CompareWithTruth({&comparison, 1});
    EXPECT_TRUE(measured) << measured.error().message;
    if (!measured) return {};
    const JudgeKernels::Measured& device = measured->front();
    EXPECT_EQ(device.kinds_agree, cpu.kinds_agree);
    EXPECT_NEAR(device.norm, cpu.norm, 1e-12 * cpu.norm);
    EXPECT_NEAR(device.element, cpu.element, 1e-12 * cpu.element);
    EXPECT_NEAR(device.reference_norm, cpu.reference.norm_relative, 1e-12);
    EXPECT_NEAR(device.reference_element, cpu.reference.element_relative, 1e-12);
    if (cpu.kinds_agree)
      EXPECT_NEAR(device.max_abs, cpu.max_abs, 1e-12 * cpu.max_abs);
    else
      EXPECT_EQ(device.max_abs, kInfinity);
    return device;
  }

  std::optional<Gpu> gpu_;
  std::optional<JudgeKernels> kernels_;
};

struct Case {
  DType dtype;
  ElementType type;
};
constexpr Case kFloats[] = {{DType::kFloat64, ElementType::kFloat64},
                            {DType::kFloat32, ElementType::kFloat32},
                            {DType::kFloat16, ElementType::kFloat16},
                            {DType::kBFloat16, ElementType::kBFloat16}};

// Values as bytes of the dtype, by truncation: what matters is that both sides read the same.
std::vector<std::byte> Encode(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * wire::ElementBytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const float single = static_cast<float>(values[i]);
    const uint32_t bits = std::bit_cast<uint32_t>(single);
    uint16_t half = static_cast<uint16_t>(bits >> 16);
    if (dtype == DType::kFloat16) {
      const int exponent = static_cast<int>(bits >> 23 & 0xFF) - 112;
      const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
      const auto mantissa = static_cast<uint16_t>(bits >> 13 & 0x3FF);
      half = !std::isfinite(single)
                 ? static_cast<uint16_t>(sign | 0x7C00 | (std::isnan(single) ? 1 : 0))
             : exponent <= 0 ? static_cast<uint16_t>(sign | mantissa)  // a denormal
                             : static_cast<uint16_t>(sign | exponent << 10 | mantissa);
    }
    std::byte* target = bytes.data() + i * wire::ElementBytes(dtype);
    if (dtype == DType::kFloat64)
      std::memcpy(target, &values[i], 8);
    else if (dtype == DType::kFloat32)
      std::memcpy(target, &single, 4);
    else
      std::memcpy(target, &half, 2);
  }
  return bytes;
}

TEST_F(JudgeKernelsTest, ErrorsAreThoseOfTheCpusScan) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  const std::vector<int64_t> shapes[] = {{1, 5}, {7, 33}, {3, 5000}, {2, 4, 17}, {40, 3}};
  for (const Case& each : kFloats)
    for (const auto& shape : shapes)
      for (const double noise : {0.0, 1e-7, 1e-3, 0.3}) {
        int64_t count = 1;
        for (const int64_t size : shape) count *= size;
        std::vector<double> expected, got;
        for (int64_t i = 0; i < count; ++i) {
          expected.push_back(normal(random) * (i % 11 == 0 ? 1e-6 : 1));
          got.push_back(expected.back() + noise * normal(random) * (i % 7 == 0 ? 1 : 0.01));
        }
        const auto expected_bytes = Encode(each.dtype, expected);
        const auto got_bytes = Encode(each.dtype, got);
        OutputView view;
        view.dtype = each.dtype;
        view.shape = shape;
        view.count = count;
        view.candidate = got_bytes.data();
        view.reference = expected_bytes.data();
        for (const double limit : {1e-6, 1e-2, 0.5, 2.0}) {
          const auto cpu = ScanErrorsCheaply(view, limit);
          const auto device =
              Compare({got_bytes.data(), expected_bytes.data(), count, RowElements(shape, count),
                       limit, each.type, nullptr, nullptr});
          ASSERT_EQ(device.within, cpu.has_value())
              << static_cast<int>(each.dtype) << " " << count << " " << noise << " " << limit;
          if (!cpu) continue;
          EXPECT_NEAR(device.norm, cpu->norm, 1e-12 * cpu->norm);
          EXPECT_NEAR(device.element, cpu->element, 1e-6 * cpu->element);
          EXPECT_EQ(device.max_abs, cpu->max_abs);
        }
      }
}

TEST_F(JudgeKernelsTest, NothingThatIsNoNumberIsWithin) {
  for (const Case& each : kFloats)
    for (const double bad : {kInfinity, -kInfinity, std::nan("")})
      for (const bool in_expected : {false, true}) {
        std::vector<double> values(100, 1.0);
        const auto fine = Encode(each.dtype, values);
        values[77] = bad;
        const auto spoilt = Encode(each.dtype, values);
        const auto& got = in_expected ? fine : spoilt;
        const auto& expected = in_expected ? spoilt : fine;
        EXPECT_FALSE(
            Compare({got.data(), expected.data(), 100, 50, 1e300, each.type, nullptr, nullptr})
                .within);
        // Both alike is for the host to look at, too.
        EXPECT_FALSE(
            Compare({spoilt.data(), spoilt.data(), 100, 50, 1e300, each.type, nullptr, nullptr})
                .within);
      }
}

TEST_F(JudgeKernelsTest, ErrorsAgainstTruthAreThoseOfTheCpusScan) {
  std::mt19937_64 random(12);
  std::normal_distribution<double> normal;
  const std::vector<int64_t> shapes[] = {{1, 5}, {7, 33}, {3, 5000}, {40, 3}};
  for (const Case& each : kFloats) {
    if (each.dtype == DType::kFloat64) continue;  // the host looks at these
    for (const auto& shape : shapes)
      for (int special = 0; special < 5; ++special) {
        std::vector<double> truth, given, got;
        for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
          truth.push_back(normal(random) * (i / shape[1] == 1 ? 1e-5 : 1));
          given.push_back(truth.back() * (1 + 1e-3 * normal(random)));
          got.push_back(truth.back() + 1e-2 * normal(random));
        }
        if (special == 1) truth[1] = given[1] = got[1] = std::nan("");
        if (special == 2) truth[2] = given[2] = kInfinity, got[2] = -kInfinity;
        if (special == 3) given[3] = kInfinity;
        if (special == 4) got[4] = std::nan("");
        const auto given_bytes = Encode(each.dtype, given), got_bytes = Encode(each.dtype, got);
        OutputView view;
        view.dtype = each.dtype;
        view.shape = shape;
        view.count = static_cast<int64_t>(truth.size());
        view.candidate = got_bytes.data();
        view.reference = given_bytes.data();
        SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(each.dtype), shape[0], special));
        ExpectErrorsOfTheCpu(view, each.type);
        view.oracle = truth.data();
        const auto measured = ExpectErrorsOfTheCpu(view, each.type);
        EXPECT_EQ(measured.reference_kinds_agree, special != 3);
        EXPECT_EQ(measured.truth_is_finite, special != 1 && special != 2);
      }
  }
}

TEST_F(JudgeKernelsTest, ARowOfZerosBearsNoError) {
  std::vector<float> expected(64, 0.0f), got(64, 0.0f);
  const Comparison comparison{got.data(), expected.data(),       64,      64,
                              0.1,        ElementType::kFloat32, nullptr, nullptr};
  EXPECT_TRUE(Compare(comparison).within);
  got[63] = 1e-30f;
  EXPECT_FALSE(Compare(comparison).within);
}

TEST_F(JudgeKernelsTest, ManyComparisonsKeepApart) {
  std::vector<float> right(48), wrong(48, 5.0f);
  for (size_t i = 0; i < right.size(); ++i) right[i] = static_cast<float>(i + 1);
  std::vector<Comparison> comparisons;
  for (int i = 0; i < 50; ++i)
    comparisons.push_back({i % 7 == 3 ? wrong.data() : right.data(), right.data(), 48, 16, 1e-3,
                           ElementType::kFloat32, nullptr, nullptr});
  const auto compared = kernels_->Compare(comparisons);
  ASSERT_TRUE(compared);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ((*compared)[static_cast<size_t>(i)].within, i % 7 != 3) << i;
}

TEST_F(JudgeKernelsTest, ExactOutputsAreComparedByTheirBytes) {
  std::vector<unsigned char> expected{0, 1, 1, 0, 1}, got = expected;
  const auto within = [&](ElementType type) {
    return Compare({got.data(), expected.data(), 5, 5, 0, type, nullptr, nullptr}).within;
  };
  EXPECT_TRUE(within(ElementType::kBytes));
  EXPECT_TRUE(within(ElementType::kBool));
  got[4] = 0;
  EXPECT_FALSE(within(ElementType::kBytes));
  got[4] = expected[4] = 2;  // equal, and no bool
  EXPECT_TRUE(within(ElementType::kBytes));
  EXPECT_FALSE(within(ElementType::kBool));
}

TEST_F(JudgeKernelsTest, EveryByteOfALongExactOutputIsSeen) {
  alignas(16) std::array<unsigned char, 16 * 5 + 7> expected{};
  for (size_t i = 0; i < expected.size(); ++i) {
    alignas(16) auto got = expected;
    got[i] = 1;
    const auto bytes = static_cast<long long>(got.size());
    const Comparison comparison{got.data(), expected.data(),     bytes,   bytes,
                                0,          ElementType::kBytes, nullptr, nullptr};
    EXPECT_FALSE(Compare(comparison).within) << i;
    got[i] = 0;
    EXPECT_TRUE(Compare(comparison).within) << i;
  }
}

TEST_F(JudgeKernelsTest, PatternsAreWrittenAndTheirFirstChangeIsFound) {
  std::vector<unsigned long long> memory(300, 7);
  const Range ranges[] = {{memory.data(), 100, 0xAAAA}, {memory.data() + 150, 150, 0xBBBB}};
  ASSERT_TRUE(kernels_->Fill(ranges));
  EXPECT_EQ(memory[99], 0xAAAAu);
  EXPECT_EQ(memory[100], 7u);
  EXPECT_EQ(memory[299], 0xBBBBu);
  EXPECT_THAT(*kernels_->FindChanges(ranges), ElementsAre(100, 150));
  memory[160] = memory[170] = memory[0] = 1;
  EXPECT_THAT(*kernels_->FindChanges(ranges), ElementsAre(0, 10));
}

TEST_F(JudgeKernelsTest, ADamagedImageIsRefused) {
  std::string image = FakeImage();
  image.resize(image.size() - 1);
  EXPECT_FALSE(JudgeKernels::Load(*gpu_, image));
  EXPECT_FALSE(JudgeKernels::Load(*gpu_, ""));
}

}  // namespace
}  // namespace assay
