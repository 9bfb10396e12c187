#include "swap/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead =
    "title = \"A model\"\nproblem = \"model.py\"\nsize = \"tiny\"\ntokens = \"tokens\"\n"
    "trace = \"TRACE\"\n";
constexpr const char* kOnCpu =
    "device = \"cpu\"\n[[place]]\nname = \"norm\"\ntitle = \"a norm\"\n"
    "kernel = [\"norm.cpp\", \"1e-6\", \"1e-5\"]\npython = \"def norm(x): return x\"\n";
constexpr const char* kOnGpu =
    "device = \"cuda\"\nsums = \"sums\"\n"
    "[[place]]\nname = \"norm\"\ntitle = \"a norm\"\nplain = \"a.cu\"\nkernel = \"b.cu\"\n"
    "[[buffer]]\nname = \"sums\"\ntype = \"bfloat16\"\nshape = [\"tokens.size(0)\"]\n"
    "[[step]]\nplace = \"norm\"\nwhen = \"layer\"\narguments = {x = \"sums\"}\n";

std::string ErrorOf(const std::string& text) {
  const auto manifest = ParseSwapManifest(text, "kernels/model", "cpu.toml");
  return manifest ? "" : manifest.error().message;
}

TEST(SwapManifest, IsReadForACpu) {
  const auto manifest = ParseSwapManifest(std::string(kHead) + kOnCpu, "kernels/model", "cpu.toml");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->Path(), "kernels/model/cpu.toml");
  EXPECT_EQ(manifest->baselines, "eager");
  ASSERT_NE(manifest->Find("norm"), nullptr);
  EXPECT_EQ(manifest->Find("norm")->kernel.path, "norm.cpp");
  EXPECT_EQ(manifest->Find("attention"), nullptr);
}

TEST(SwapManifest, IsReadForAGpu) {
  const auto manifest =
      ParseSwapManifest(std::string(kHead) + kOnGpu, "kernels/model", "decode.toml");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->places.front().plain.path, "a.cu");
  EXPECT_EQ(manifest->steps.front().when, SwapStep::When::kLayer);
  EXPECT_EQ(manifest->steps.front().arguments.at("x"), "sums");
}

TEST(SwapManifest, NamesTheLineAndTheRemedy) {
  EXPECT_THAT(ErrorOf(std::string(kHead) + kOnCpu + "titel = \"x\"\n"),
              HasSubstr("kernels/model/cpu.toml line 12: titel: no such key"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + "device = \"tpu\"\n"),
              HasSubstr("write \"cpu\" or \"cuda\""));
  EXPECT_THAT(ErrorOf(std::string(kHead) + "device = \"cpu\"\n"),
              HasSubstr("write at least one [[place]]"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + kOnCpu + std::string(kOnCpu).substr(15)),
              HasSubstr("two places have one name"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + kOnGpu +
                      "[[step]]\nplace = \"nom\"\nwhen = \"last\"\narguments = {}\n"),
              HasSubstr("there is no [[place]] of this name"));
  EXPECT_THAT(ErrorOf("title = "), HasSubstr("not TOML"));
}

TEST(SwapManifest, ChangesTextsThatAreThere) {
  const SwapKernel kernel{"norm.cpp", {{"1e-6", "1e-5"}}, ""};
  EXPECT_EQ(WithChanges("a = 1e-6; b = 1e-6;", kernel).value(), "a = 1e-5; b = 1e-5;");
  EXPECT_THAT(WithChanges("a = 1;", kernel).error().message, HasSubstr("has no '1e-6'"));
}

TEST(SwapManifest, ThoseOfTheRepositoryAreRead) {
  for (const char* file : {"cpu.toml", "decode.toml", "prefill.toml"}) {
    const auto manifest =
        ReadSwapManifest(std::string(ASSAY_SOURCE_DIRECTORY "/kernels/model/") + file);
    ASSERT_TRUE(manifest) << manifest.error().message;
    for (const SwapPlace& place : manifest->places)
      EXPECT_EQ(place.kernel.content.empty(), place.kernel.path.empty()) << place.name;
  }
}

}  // namespace
}  // namespace assay
