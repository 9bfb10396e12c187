// Tests the native host's refusals, under the sanitizers, unlike the host itself.
#include "plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "judge_double.h"

namespace assay::native {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using wire::DType;
using wire::Kind;
using wire::Role;

TEST(Text, CutsWhatDoesNotFitAndSaysSo) {
  char bytes[8];
  Text text(bytes, sizeof bytes);
  text.Add("abcdefg");
  EXPECT_STREQ(bytes, "abcdefg");
  text.Add("h");
  EXPECT_STREQ(bytes, "abcd...");
  text.Add(int64_t{12});
  EXPECT_STREQ(bytes, "abcd...");
}

TEST(Text, WritesNumbersAtTheirLimits) {
  char bytes[80];
  Text(bytes, sizeof bytes)
      .Add(INT64_MIN)
      .Add(" ")
      .Add(INT64_MAX)
      .Add(" ")
      .Add(int64_t{0})
      .Add(" ")
      .AddHex(UINT64_MAX);
  EXPECT_STREQ(bytes, "-9223372036854775808 9223372036854775807 0 0xffffffffffffffff");
}

TEST(Text, ReadsNoMoreThanItIsAllowed) {
  const char unterminated[3] = {'a', 'b', 'c'};
  char bytes[16];
  Text(bytes, sizeof bytes).Add(unterminated, sizeof unterminated);
  EXPECT_STREQ(bytes, "abc");
}

// A sound plan of one input, one parameter, one output and a scalar, over regions that no test
// touches.
class PlanTest : public ::testing::Test {
 protected:
  PlanTest() : plan_(std::make_unique<wire::Plan>()) {
    plan_->argument_count = 4;
    plan_->slot_count = 3;
    plan_->input_stride = 4096;
    plan_->output_stride = 4096;
    plan_->weights_stride = 4096;
    plan_->arguments[0] = Tensor("x", Role::kInput, DType::kFloat32, {8, 16});
    plan_->arguments[0].offset = 64;
    plan_->arguments[1] = Scalar("n", Kind::kInt);
    plan_->arguments[1].offset = 1024;
    plan_->arguments[2] = Tensor("w", Role::kParameter, DType::kInt8, {5});
    plan_->arguments[3] = Tensor("y", Role::kOutput, DType::kFloat64, {});
    for (const auto region :
         {wire::Region::kInputs, wire::Region::kWeights, wire::Region::kOutputs})
      regions_.of[static_cast<uint32_t>(region)] = {memory_, 3 * 4096,
                                                    region == wire::Region::kOutputs};
  }

  bool Sound() {
    Text text(message_, sizeof message_);
    return PlanIsSound(*plan_, regions_, text);
  }
  void ExpectRefused(std::string_view why, const std::function<void()>& change) {
    const wire::Plan before = *plan_;
    const Regions regions_before = regions_;
    change();
    EXPECT_FALSE(Sound()) << why;
    EXPECT_THAT(message_, HasSubstr(why));
    *plan_ = before;
    regions_ = regions_before;
    EXPECT_TRUE(Sound());
  }

  std::unique_ptr<wire::Plan> plan_;
  Regions regions_{};
  unsigned char memory_[1];
  char message_[512];
};

TEST_F(PlanTest, RefusesEachBadField) {
  ASSERT_TRUE(Sound()) << message_;
  ExpectRefused("0 arguments", [&] { plan_->argument_count = 0; });
  ExpectRefused("2049 arguments", [&] { plan_->argument_count = wire::kArgumentsMax + 1; });
  ExpectRefused("slots", [&] { plan_->slot_count = UINT32_MAX; });
  ExpectRefused("has no name", [&] { plan_->arguments[0].name[0] = 0; });
  ExpectRefused("has no name", [&] { memset(plan_->arguments[0].name, 'a', wire::kNameBytes); });
  ExpectRefused("unknown role", [&] { plan_->arguments[0].role = Role{9}; });
  ExpectRefused("unknown kind", [&] { plan_->arguments[0].kind = Kind{9}; });
  ExpectRefused("unknown kind", [&] { plan_->arguments[0].dtype = DType{99}; });
  ExpectRefused("unknown kind", [&] { plan_->arguments[0].rank = 9; });
  ExpectRefused("unknown kind", [&] { plan_->arguments[0].shape[0] = -1; });
  ExpectRefused("unknown kind", [&] { plan_->arguments[0].shape[0] = INT64_MAX; });
  ExpectRefused("size that its shape", [&] { plan_->arguments[0].size_bytes += 4; });
  ExpectRefused("scalar but not an input", [&] { plan_->arguments[1].role = Role::kOutput; });
  ExpectRefused("not attached",
                [&] { regions_.of[static_cast<uint32_t>(wire::Region::kWeights)].data = nullptr; });
  ExpectRefused("cannot be written", [&] {
    regions_.of[static_cast<uint32_t>(wire::Region::kOutputs)].writable = false;
  });
  ExpectRefused("not aligned", [&] { plan_->arguments[0].offset = 4; });
  ExpectRefused("not aligned", [&] { plan_->input_stride = 4100; });
  ExpectRefused("does not fit its slot", [&] { plan_->arguments[0].offset = 4096 - 64; });
  ExpectRefused("does not fit its slot", [&] { plan_->arguments[2].offset = 4096; });
  ExpectRefused("does not fit its slot", [&] { plan_->arguments[2].offset = ~uint64_t{63}; });
  ExpectRefused("does not fit its region", [&] { plan_->weights_stride = 2 * 4096; });
  ExpectRefused("does not fit its region", [&] { plan_->input_stride = uint64_t{1} << 62; });
  ExpectRefused("does not fit its region", [&] { plan_->slot_count = 4; });
}

TEST_F(PlanTest, AChangedInputIsPassedOnceAndLiesAmongTheOutputs) {
  plan_->arguments[4] = Tensor("x_after", Role::kOutput, DType::kFloat32, {8, 16});
  plan_->arguments[4].offset = 512;
  plan_->argument_count = 5;
  plan_->arguments[0].twin = 5;
  plan_->arguments[4].twin = 1;
  ASSERT_TRUE(Sound()) << message_;
  ExpectRefused("a twin that is none", [&] { plan_->arguments[0].twin = 4; });
  ExpectRefused("a twin that is none", [&] { plan_->arguments[0].twin = 6; });
  ExpectRefused("a twin that is none", [&] { plan_->arguments[4].twin = 2; });
  ExpectRefused("a twin that is none", [&] { plan_->arguments[4].dtype = DType::kInt32; });
  ExpectRefused("a twin that is none", [&] { plan_->arguments[2].twin = 1; });
  EXPECT_EQ(AddressOf(plan_->arguments[0], *plan_, regions_, 1) - memory_, 4096 + 512);
  Text text(message_, sizeof message_);
  AddDeclaration(*plan_, ASSAY_LANGUAGE_CPP, false, text);
  EXPECT_STREQ(message_,
               "ASSAY_KERNEL(assay::Tensor<float, 2> x, int64_t n, assay::Tensor<const int8_t, 1> "
               "w, assay::Tensor<double, 0> y)");
}

TEST_F(PlanTest, TensorsWithoutElementsAndNoSlotsAreSound) {
  plan_->arguments[0] = Tensor("x", Role::kInput, DType::kFloat32, {0, INT64_MAX});
  EXPECT_TRUE(Sound()) << message_;
  plan_->slot_count = 0;
  EXPECT_TRUE(Sound()) << message_;
}

TEST_F(PlanTest, AHugeSignatureIsCutNotOverrun) {
  plan_->argument_count = wire::kArgumentsMax;
  for (uint32_t i = 0; i < wire::kArgumentsMax; ++i)
    plan_->arguments[i] =
        Tensor(fmt::format("{:a<100}{}", "", i), Role::kParameter, DType::kBFloat16, {1, 1});
  const auto message = std::make_unique<char[]>(wire::kMessageBytes);
  Text text(message.get(), wire::kMessageBytes);
  const AssayKernel kernel{1, ASSAY_LANGUAGE_CPP, 0, nullptr, nullptr, nullptr};
  EXPECT_FALSE(SignatureFits(kernel, *plan_, false, text));
  EXPECT_THAT(message.get(), EndsWith("..."));
}

TEST_F(PlanTest, AnEqualSignatureFits) {
  const AssayParameter parameters[] = {{ASSAY_KIND_TENSOR, ASSAY_FLOAT32, 2, 0},
                                       {ASSAY_KIND_INT, 0, 0, 0},
                                       {ASSAY_KIND_TENSOR, ASSAY_INT8, 1, 0},
                                       {ASSAY_KIND_TENSOR, ASSAY_FLOAT64, 0, 1}};
  const AssayKernel kernel{1, ASSAY_LANGUAGE_CPP, 4, parameters, nullptr, nullptr};
  Text text(message_, sizeof message_);
  EXPECT_TRUE(SignatureFits(kernel, *plan_, false, text));
}

TEST_F(PlanTest, OnADeviceTheLastArgumentIsTheStream) {
  const AssayParameter parameters[] = {{ASSAY_KIND_TENSOR, ASSAY_FLOAT32, 2, 0},
                                       {ASSAY_KIND_INT, 0, 0, 0},
                                       {ASSAY_KIND_TENSOR, ASSAY_INT8, 1, 0},
                                       {ASSAY_KIND_TENSOR, ASSAY_FLOAT64, 0, 1},
                                       {ASSAY_KIND_STREAM, 0, 0, 0}};
  AssayKernel kernel{1, ASSAY_LANGUAGE_CPP, 5, parameters, "ASSAY_KERNEL(...)", nullptr};
  const auto fits = [&](bool on_device) {
    Text text(message_, sizeof message_);
    return SignatureFits(kernel, *plan_, on_device, text);
  };
  EXPECT_TRUE(fits(true)) << message_;
  EXPECT_FALSE(fits(false));
  EXPECT_THAT(message_, HasSubstr("it takes 5 arguments, the problem has 4\n"));
  kernel.parameter_count = 4;
  EXPECT_TRUE(fits(false)) << message_;
  EXPECT_FALSE(fits(true));
  EXPECT_THAT(message_, HasSubstr("it takes 4 arguments, the problem has 4 and the stream"));
  EXPECT_THAT(message_, HasSubstr("assay::Tensor<double, 0> y, cudaStream_t stream)"));
}

TEST_F(PlanTest, AnotherLastArgumentThanTheStreamIsNamed) {
  plan_->argument_count = 1;
  const AssayParameter parameters[] = {{ASSAY_KIND_TENSOR, ASSAY_FLOAT32, 2, 0},
                                       {ASSAY_KIND_INT, 0, 0, 0}};
  const AssayKernel kernel{1, ASSAY_LANGUAGE_CPP, 2, parameters, nullptr, nullptr};
  Text text(message_, sizeof message_);
  EXPECT_FALSE(SignatureFits(kernel, *plan_, true, text));
  EXPECT_THAT(message_, HasSubstr("the last argument is the stream, a cudaStream_t; the candidate "
                                  "declares int64_t (a scalar)"));
}

}  // namespace
}  // namespace assay::native
