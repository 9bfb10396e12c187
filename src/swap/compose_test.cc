#include "swap/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/files.h"
#include "builders/device_build.h"
#include "ladder/recorded_shapes.h"
#include "toolchain/device_program.h"
#include "toolchain/nvrtc.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two kernels: one fills `sums`, one reads a layer's weights and writes `sums` again.
SwapManifest TwoSteps() {
  SwapManifest manifest;
  manifest.title = "A model";
  manifest.device = "cuda";
  manifest.sums = "sums";
  SwapPlace embed;
  embed.name = "embed";
  embed.plain = {"embed.cu",
                 {},
                 "//! launch fill grid=(1) block=(32) args=(x, out)\n"
                 "extern \"C\" __global__ void fill(const float* x, float* out) {}\n"};
  SwapPlace scale;
  scale.name = "scale";
  const std::string body =
      "//! constant N = w.size(0)\n//! scratch s float[2 * N]\n"
      "//! tensormap m = w box=(8)\n"
      "//! launch run grid=(ceil_div(N, 4)) block=(64) shared=4*N args=(x, w, s, m, out)\n"
      "#define TWICE 2\n"
      "extern \"C\" __global__ void run(const float* x, const float* w, float* s, int m, float* o) "
      "{\n  extern __shared__ __align__(16) float shared[];\n}\n";
  scale.plain = {"plain.cu", {}, body};
  scale.kernel = {"fast.cu", {}, "// fast\n" + body};
  manifest.places = {embed, scale};
  manifest.buffers = {{"sums", "float", {"x.size(0)"}}};
  manifest.steps = {
      {"embed", SwapStep::When::kFirst, {{"x", "x"}, {"out", "sums"}}},
      {"scale", SwapStep::When::kLayer, {{"x", "sums"}, {"w", "w_{layer}"}, {"out", "sums"}}},
      {"scale", SwapStep::When::kLast, {{"x", "sums"}, {"w", "w_0"}, {"out", "out"}}}};
  return manifest;
}

ProblemDescription DescriptionOfTwoLayers() {
  return *DescriptionOf({"input x float32[16]", "parameter w_0 float32[8]",
                         "parameter w_1 float32[8]", "output out float32[16]",
                         "output out1 float32[16]", "output out2 float32[16]"});
}

std::string Composed(const SwapManifest& manifest, const Composition& composition) {
  const auto text = ComposeDevice(manifest, DescriptionOfTwoLayers(), composition);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

TEST(ComposeDevice, LaunchesEachLayersKernelsInOrder) {
  const SwapManifest manifest = TwoSteps();
  EXPECT_EQ(CountLayers(manifest, DescriptionOfTwoLayers()), 2);
  const std::string text = Composed(manifest, {});
  const auto program = ParseDeviceProgram(text);
  ASSERT_TRUE(program) << program.error();
  std::vector<std::string> launches;
  for (const DeviceLaunch& launch : program->launches)
    launches.push_back(launch.kernel + " " + launch.arguments.front() + " " + launch.arguments[1]);
  EXPECT_THAT(launches, testing::ElementsAre("embed_0_fill x sums", "scale_0_run sums w_0",
                                             "scale_0_run sums w_1", "scale_1_run sums w_0"));
  EXPECT_THAT(text, HasSubstr("//! scratch sums float[16]"));
  EXPECT_THAT(text, HasSubstr("//! scratch scale_0_s float[16]"));
  EXPECT_THAT(text, HasSubstr("#define N 8\n#define run scale_0_run\nnamespace scale_0 {"));
  EXPECT_THAT(text, HasSubstr("#undef TWICE\n"));
  EXPECT_THAT(text, HasSubstr("grid=(2, 1, 1) block=(64, 1, 1) shared=32"));
  EXPECT_THAT(text, HasSubstr("reinterpret_cast< float *>(::assay_shared_memory)"));
  EXPECT_THAT(text, Not(HasSubstr("// fast")));
}

TEST(ComposeDevice, SwapsDoublesAndTraces) {
  const SwapManifest manifest = TwoSteps();
  EXPECT_THAT(Composed(manifest, {{"scale"}, "", false}), HasSubstr("// fast"));
  const auto doubled = ParseDeviceProgram(Composed(manifest, {{}, "scale", false}));
  ASSERT_TRUE(doubled);
  EXPECT_EQ(doubled->launches.size(), 7u);  // 4, and 3 again
  const auto traced = ParseDeviceProgram(Composed(manifest, {{}, "", true}));
  ASSERT_TRUE(traced);
  EXPECT_EQ(traced->launches[1].arguments.front(), "sums");
  EXPECT_EQ(traced->launches[1].arguments.back(), "out1");
  EXPECT_EQ(traced->launches[2].arguments.front(), "out1");
  EXPECT_EQ(traced->launches[2].arguments.back(), "out2");
  EXPECT_EQ(traced->launches[3].arguments.front(), "out2");
  EXPECT_EQ(traced->launches[3].arguments.back(), "out");
}

TEST(ComposeDevice, NamesTheStepThatDoesNotFit) {
  SwapManifest manifest = TwoSteps();
  manifest.steps[1].arguments["x"] = "sum";
  EXPECT_THAT(ComposeDevice(manifest, DescriptionOfTwoLayers(), {}).error().message,
              HasSubstr("step of place scale: there is no tensor or buffer 'sum'"));
  manifest = TwoSteps();
  manifest.steps[1].arguments.erase("w");
  EXPECT_THAT(ComposeDevice(manifest, DescriptionOfTwoLayers(), {}).error().message,
              HasSubstr("plain.cu: line 1:"));
  manifest = TwoSteps();
  manifest.buffers[0].shape = {"y.size(0)"};
  EXPECT_THAT(ComposeDevice(manifest, DescriptionOfTwoLayers(), {}).error().message,
              HasSubstr("buffer sums:"));
}

TEST(ComposePython, PutsKernelsInThePlaceOfFunctions) {
  SwapManifest manifest;
  SwapPlace norm;
  norm.name = "norm";
  norm.python = "def norm(x):\n    return kernel(x)";
  norm.kernel = {"norm.cpp",
                 {},
                 "//! flags -fopenmp\n#include <assay/kernel.h>\n#include <cmath>\n"
                 "ASSAY_KERNEL(assay::Tensor<float, 1> x) {}\n"};
  SwapPlace gate;
  gate.name = "gate";
  gate.python = "def gate(x):\n    return original(x)";
  manifest.places = {norm, gate};
  const std::string problem = "class Model:\n    pass\n";
  const std::string text =
      ComposePython(manifest, problem, {{"norm", "gate"}, "gate", true}).value();
  EXPECT_TRUE(text.starts_with(problem));
  EXPECT_THAT(text, HasSubstr("#include <cmath>\n\n#include <torch/extension.h>"));
  EXPECT_THAT(text, Not(HasSubstr("assay/kernel.h")));
  EXPECT_THAT(text, HasSubstr("namespace norm_kernel {"));
  EXPECT_THAT(text,
              HasSubstr("norm = _place_of_norm(lambda *tensors: _kernels.norm(tensors), norm)"));
  EXPECT_THAT(text, HasSubstr("gate = _place_of_gate(None, gate)"));
  EXPECT_THAT(text, HasSubstr("\"-fopenmp\"],\n    extra_ldflags=[\"-fopenmp\"]"));
  EXPECT_THAT(text, HasSubstr("gate = _twice(gate)"));
  EXPECT_TRUE(text.ends_with("class ModelNew(Model):\n    pass\n"));
  // With nothing to compile there is no extension.
  EXPECT_THAT(ComposePython(manifest, problem, {{"gate"}, "", true}).value(),
              Not(HasSubstr("load_inline")));
  manifest.places[0].kernel.content += "// '''\n";
  EXPECT_THAT(ComposePython(manifest, problem, {{"norm"}, "", true}).error().message,
              HasSubstr("take it out"));
}

// The signature of kernels/model/model.py, decoding or reading a prompt, with so many layers.
ProblemDescription Llama(int layers, bool decodes) {
  const std::string rows = decodes ? "1" : "2048";
  std::vector<std::string> lines{"input tokens int64[" + rows + "]"};
  const auto each = [&](const std::string& format) {
    for (int layer = 0; layer < layers; ++layer) {
      std::string line = format;
      lines.push_back(line.replace(line.find('#'), 1, std::to_string(layer)));
    }
  };
  if (decodes) {
    each("input keys_# bfloat16[512, 8, 64]");
    each("input values_# bfloat16[512, 8, 64]");
  }
  for (const std::string& line :
       {std::string("embedding bfloat16[128256, 2048]"), std::string("norm bfloat16[2048]"),
        "cosine float32[" + rows + ", 32]", "sine float32[" + rows + ", 32]"})
    lines.push_back("parameter " + line);
  for (const char* line :
       {"attention_norm bfloat16[2048]", "qkv bfloat16[3072, 2048]", "project bfloat16[2048, 2048]",
        "feed_forward_norm bfloat16[2048]", "gate bfloat16[8192, 2048]", "up bfloat16[8192, 2048]",
        "down bfloat16[2048, 8192]"})
    each(std::string("parameter layers_#_") + line);
  lines.push_back("output out bfloat16[1, 128256]");
  return *DescriptionOf(lines);
}

TEST(ComposeDevice, ModelsAreCompiledForHopper) {
  if (!FindNvrtc()) GTEST_SKIP() << "no NVRTC here";
  const auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto cache = TemporaryFolder::Create();
  ASSERT_TRUE(cache);
  ::setenv("XDG_CACHE_HOME", cache->path().c_str(), 1);
  for (const char* file : {"decode.toml", "prefill.toml"}) {
    const auto manifest =
        ReadSwapManifest(std::string(ASSAY_SOURCE_DIRECTORY "/kernels/model/") + file);
    ASSERT_TRUE(manifest) << manifest.error().message;
    Composition all;
    for (const SwapPlace& place : manifest->places) all.swapped.insert(place.name);
    const ProblemDescription description = Llama(16, file == std::string("decode.toml"));
    const auto plan = std::make_unique<wire::Plan>(LayOutSlots(description).value());
    for (const Composition& composition : {Composition{}, all}) {
      const auto text = ComposeDevice(*manifest, description, composition);
      ASSERT_TRUE(text) << text.error().message;
      const auto source = CandidateFromText("model.cu", *text);
      ASSERT_TRUE(source) << source.error().message;
      const auto built = BuildDevice(*source, {}, {*gpu, *plan, true, {}}, {});
      ASSERT_TRUE(built && !built->failure)
          << file << ": " << (built ? *built->failure + built->log : built.error().message);
    }
  }
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace assay
