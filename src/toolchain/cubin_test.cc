#include "toolchain/cubin.h"

#include <elf.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <filesystem>
#include <map>

#include "base/files.h"
#include "toolchain/cubin_testing.h"

namespace assay {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TestCubin TwoKernels() {
  return {{{"row_max", 24, 0, 1024 + 128}, {"_Z6divideILi256EEvPKfPf", 167, 256, 0}}};
}

TEST(Cubin, SaysWhatAThreadAndABlockTake) {
  const auto kernels = ReadCubin(TwoKernels().Write());
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_EQ(kernels[0].name, "row_max");
  EXPECT_EQ(kernels[0].registers, 24);
  EXPECT_EQ(kernels[0].stack_bytes, 0);
  EXPECT_EQ(kernels[0].shared_bytes, 128);
  EXPECT_EQ(kernels[1].name, "_Z6divideILi256EEvPKfPf");
  EXPECT_EQ(kernels[1].registers, 167);
  EXPECT_EQ(kernels[1].stack_bytes, 256);
  EXPECT_EQ(kernels[1].shared_bytes, 0);
}

TEST(Cubin, WhatCudaReservesStandsInTheSectionFromHopperOn) {
  TestCubin cubin{{{"k", 16, 0, 1200}}};
  for (const auto& [architecture, format, expected] :
       {std::tuple{80u, 8, 1200}, {89u, 7, 1200}, {90u, 7, 176}, {90u, 8, 176}, {120u, 8, 176}}) {
    cubin.architecture = architecture;
    cubin.format = format;
    EXPECT_EQ(ReadCubin(cubin.Write()).at(0).shared_bytes, expected) << architecture;
  }
}

TEST(Cubin, OtherFilesHaveNone) {
  EXPECT_THAT(ReadCubin(""), IsEmpty());
  EXPECT_THAT(ReadCubin("\177ELF"), IsEmpty());
  std::string program = TwoKernels().Write();
  program[18] = 62;  // a program for x86-64
  EXPECT_THAT(ReadCubin(program), IsEmpty());
  EXPECT_THAT(FindCubins("x" + program), IsEmpty());
}

// Only kernels have an entry; a function that was not inlined has a section and registers, too.
TEST(Cubin, FunctionsAreNoKernels) {
  std::string image = TestCubin{{{"k", 16, 0, 0}}}.Write();
  ASSERT_THAT(ReadCubin(image), SizeIs(1));
  // The symbol's st_other, in the table that begins behind the header and the names "", "k".
  const size_t symbol = sizeof(Elf64_Ehdr) + 3 + sizeof(Elf64_Sym);
  ASSERT_EQ(image[symbol + offsetof(Elf64_Sym, st_other)], 0x10);
  image[symbol + offsetof(Elf64_Sym, st_other)] = 0;
  EXPECT_THAT(ReadCubin(image), IsEmpty());
}

// Each would take long: a name that doubles, and starts of cubins that are none.
TEST(Cubin, WhatIsMadeToTakeLongIsLeftAlone) {
  std::string name = "_Z1fI1aS";
  for (int i = 0; i < 60; ++i) name += fmt::format("I1bIS{0}_S{0}_E", i);
  EXPECT_EQ(KernelDisplayName(name), "f<...>");
  std::string image = TwoKernels().Write();
  Elf64_Ehdr header;
  memcpy(&header, image.data(), sizeof header);
  header.e_shoff = 1 << 30;
  std::string starts = ".";
  for (int i = 0; i < 2000; ++i)
    starts.append(reinterpret_cast<const char*>(&header), sizeof header);
  EXPECT_THAT(FindCubins(starts + TwoKernels().Write()), IsEmpty());
}

// Every prefix of an image, and every image with one byte changed, is read without harm.
TEST(Cubin, DamagedImagesAreReadWithoutHarm) {
  const std::string image = TwoKernels().Write();
  for (size_t size = 0; size < image.size(); ++size)
    EXPECT_LE(ReadCubin(std::string(image.data(), size)).size(), 2u);
  for (size_t i = 0; i < image.size(); ++i)
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string damaged = image;
      damaged[i] = value;
      EXPECT_LE(ReadCubin(damaged).size(), 64u);
      EXPECT_LE(FindCubins("." + damaged).size(), 2u);
    }
}

TEST(Cubin, AreFoundInsideOfALibrary) {
  const std::string first = TwoKernels().Write(), second = TestCubin{{{"k", 8, 0, 0}}}.Write();
  const std::string library = "\177ELF of a processor" + first + "between" + second + "end";
  const auto cubins = FindCubins(library);
  ASSERT_THAT(cubins, SizeIs(2));
  EXPECT_EQ(cubins[0], first);
  EXPECT_EQ(cubins[1], second);
}

TEST(Cubin, NamesAreWrittenAsInCpp) {
  EXPECT_EQ(KernelDisplayName("softmax"), "softmax");
  EXPECT_EQ(KernelDisplayName("_Z5plainPKfPfi"), "plain");
  EXPECT_EQ(KernelDisplayName("_Z6divideILi256EEvPKfPf"), "divide<256>");
  EXPECT_EQ(KernelDisplayName("_ZN12_GLOBAL__N_17softmaxILi4EfEEvPT0_"), "softmax<4, float>");
  EXPECT_EQ(KernelDisplayName("_ZN5outer5inner4rowsEPf"), "outer::inner::rows");
  EXPECT_EQ(KernelDisplayName("_Zbroken"), "_Zbroken");
  EXPECT_EQ(KernelDisplayName(""), "");
}

// PyTorch's are so long that cards were full of letters and lengths.
TEST(Cubin, OfLongNamesThePathIsWritten) {
  EXPECT_EQ(
      KernelDisplayName(
          "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_15CUD"
          "AFunctor_addIfEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_"),
      "at::native::elementwise_kernel<...>");
  const std::string long_name(200, 'x');
  EXPECT_EQ(KernelDisplayName(long_name), long_name);
  EXPECT_EQ(KernelDisplayName("_ZN900" + long_name), "_ZN900" + long_name);
  EXPECT_EQ(KernelDisplayName("_ZN12_GLOBAL__N_14rowsE" + long_name), "rows");
  EXPECT_EQ(KernelDisplayName("_Z99999999999999999999999" + long_name),
            "_Z99999999999999999999999" + long_name);
}

constexpr const char* kKernels = R"(
extern "C" __global__ void plain(const float* x, float* y, int n) {
  __shared__ float s[300];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x + 1) % 256] * 2 + n;
}
extern "C" __global__ void keeps_an_array(const float* x, float* y, int n) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = x[i * n + threadIdx.x];
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 64; ++i) a[i] += a[(i * 7 + k) % 64] * a[i];
  for (int i = 0; i < 64; ++i) y[i * n + threadIdx.x] = a[i];
}
)";

struct Said {
  int registers = 0, stack_bytes = 0, shared_bytes = 0;
};

// What ptxas itself says of them.
std::map<std::string, Said> PtxasSays(const std::string& command) {
  std::map<std::string, Said> said;
  FILE* output = ::popen((command + " 2>&1").c_str(), "r");
  char line[1024], name[256];
  std::string kernel;
  while (output != nullptr && ::fgets(line, sizeof line, output) != nullptr) {
    const std::string text = line;
    int value = 0;
    if (::sscanf(line, "ptxas info : Function properties for %255s", name) == 1) kernel = name;
    if (::sscanf(line, " %d bytes stack frame", &value) == 1) said[kernel].stack_bytes = value;
    if (::sscanf(line, "ptxas info : Used %d registers", &value) == 1)
      said[kernel].registers = value;
    if (const size_t at = text.find(" bytes smem"); at != std::string::npos)
      said[kernel].shared_bytes = ::atoi(text.c_str() + text.rfind(' ', at - 1));
  }
  if (output != nullptr) ::pclose(output);
  return said;
}

TEST(Cubin, AgreesWithPtxasOnAllArchitectures) {
  const std::string nvcc = "/usr/local/cuda/bin/nvcc";
  if (!std::filesystem::exists(nvcc)) GTEST_SKIP() << "no nvcc in /usr/local/cuda";
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const std::string source = folder->path() / "kernels.cu", image = folder->path() / "cubin";
  ASSERT_TRUE(WriteFileAtomically(source, kKernels));
  for (const std::string architecture : {"sm_80", "sm_89", "sm_90a", "sm_100a"}) {
    auto said = PtxasSays(nvcc + " -arch=" + architecture + " -cubin -Xptxas -v -o " + image + " " +
                          source);
    ASSERT_THAT(said, SizeIs(2)) << architecture;
    const auto kernels = ReadCubin(ReadFile(image, 1 << 20).value_or(""));
    ASSERT_THAT(kernels, SizeIs(2)) << architecture;
    for (const CompiledKernel& kernel : kernels) {
      EXPECT_EQ(kernel.registers, said[kernel.name].registers) << architecture << kernel.name;
      EXPECT_EQ(kernel.stack_bytes, said[kernel.name].stack_bytes) << architecture << kernel.name;
      EXPECT_EQ(kernel.shared_bytes, said[kernel.name].shared_bytes) << architecture << kernel.name;
    }
    EXPECT_EQ(said["plain"].shared_bytes, 1200);
    EXPECT_EQ(said["keeps_an_array"].stack_bytes, 256);
  }
}

}  // namespace
}  // namespace assay
