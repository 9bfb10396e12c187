#include <gmock/gmock.h>

#include <iterator>
#include <sstream>

#include "toolchain/build.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string ErrorOf(std::string_view source, std::string_view language = "cpp") {
  const auto options = ParseBuildOptions(source, language);
  return options ? std::string() : options.error();
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Flags, NoDirectivesMeansNoFlags) {
  const auto options = ParseBuildOptions("int x;\n// flags -O2\n", "cpp");
  ASSERT_TRUE(options);
  EXPECT_THAT(options->flags, IsEmpty());
  EXPECT_THAT(options->compiler, IsEmpty());
}

TEST(Flags, LinesAddUpInOrder) {
  const auto options = ParseBuildOptions(
      "//! flags -O2 -ffast-math\r\n  //! compiler clang++\nint x;\n//! flags\t-mavx2   -DN=4\n",
      "cpp");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->flags, ElementsAre("-O2", "-ffast-math", "-mavx2", "-DN=4"));
  EXPECT_EQ(options->compiler, "clang++");
}

TEST(Flags, CReadsBlockComments) {
  const auto options = ParseBuildOptions("/*! flags -O1 -std=gnu11 */\n/*! compiler gcc */", "c");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->flags, ElementsAre("-O1", "-std=gnu11"));
  EXPECT_EQ(options->compiler, "gcc");
  const auto cpp = ParseBuildOptions("/*! flags -O1 */ int x;", "cpp");
  ASSERT_TRUE(cpp);
  EXPECT_THAT(cpp->flags, IsEmpty());
}

TEST(Flags, AllowedFamilies) {
  for (const std::string& flag :
       Words("-O0 -O1 -O2 -O3 -Ofast -Os -g -march=native -march=x86-64-v3 -mtune=znver3 "
             "-mcpu=native -mavx -mavx2 -mavx512f -mno-avx512f -msse4.1 -mfma -mamx-tile "
             "-mf16c -mprefer-vector-width=512 -mprefer-vector-width=none -ffast-math "
             "-fno-fast-math -funroll-loops -fno-math-errno -fno-trapping-math "
             "-fassociative-math -freciprocal-math -ffinite-math-only -fno-signed-zeros "
             "-ffp-contract=off -fno-strict-aliasing -fvectorize -ftree-vectorize -fno-inline "
             "-fomit-frame-pointer -fopenmp -fopenmp-simd -std=c++17 -std=c++20 -std=gnu++23 "
             "-DNAME -DNAME=8 -DSCALE=-1.5e+3 -UNDEBUG -Wall -Wno-unused-variable "
             "-Werror=return-type -Wformat=2 -pthread -lm -lpthread "
             "--param=max-unroll-times=4 ")) {
    EXPECT_EQ(ErrorOf(std::string("//! flags ") + flag), "") << flag;
  }
  EXPECT_EQ(ErrorOf("//! flags -std=c17", "c"), "");
}

// Without -fopenmp a loop of threads runs on one, and a race in it cannot show.
TEST(Flags, OpenMpIsSetWhereTheFileUsesIt) {
  const auto flags = [](std::string_view source, std::string_view language) {
    return ParseBuildOptions(source, language)->flags;
  };
  EXPECT_THAT(flags("int f() {\n  #pragma omp parallel for\n}", "cpp"), ElementsAre("-fopenmp"));
  EXPECT_THAT(flags("# pragma omp barrier", "c"), ElementsAre("-fopenmp"));
  EXPECT_THAT(flags("#include <omp.h>", "cpp"), ElementsAre("-fopenmp"));
  EXPECT_THAT(flags("//! flags -fopenmp-simd\n#pragma omp simd", "cpp"),
              ElementsAre("-fopenmp-simd"));
  EXPECT_THAT(flags("//! flags -fopenmp\n#pragma omp parallel", "cpp"), ElementsAre("-fopenmp"));
  EXPECT_THAT(flags("// no #pragma omp here", "cpp"), IsEmpty());
}

TEST(Flags, ParameterMayStandInASecondWord) {
  const auto options = ParseBuildOptions("//! flags --param max-unroll-times=4 -O2", "cpp");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->flags, ElementsAre("--param=max-unroll-times=4", "-O2"));
}

TEST(Flags, EverythingElseIsRefused) {
  for (const std::string& flag :
       Words("-I/etc -I -include -includefoo.h -imacros -isystem/usr -L/tmp -Wl,-rpath,/tmp "
             "-Wl -Wa,-al=/tmp/x -Wp,-MD,/tmp/x -fplugin=/tmp/x.so -fplugin-arg-x-y=1 "
             "-specs=/tmp/x -B/tmp -wrapper -x c @/tmp/flags -o /tmp/out -o/tmp/out "
             "-save-temps -save-temps=obj -dumpdir -flto -fprofile-generate "
             "-fprofile-use=/tmp/x -fdump-tree-all -fopt-info-vec=/tmp/x -fsanitize=address "
             "-finstrument-functions -fuse-ld=/tmp/ld -fopenmp=libfoo -lcrypto -l -lm.so "
             "-static -shared -rdynamic -Xlinker -Xassembler -T/tmp/script -nostdlib -E -S -c "
             "-M -MF/tmp/x -v -### -pipe -mabi=ms -mcmodel=large -m32 -mavx2=/tmp -march= "
             "-march=a/b -march=$(id) -DNAME=\"x\" -DNAME=a;b -DNAME=(x) -D -D1X -DF(x)=1 -U "
             "-U/x --param=lto-partitions=1 --param=max-unroll-times=x "
             "--param=max-unroll-times --sysroot=/tmp --help -std=c++14 -std=c11 "
             "-fvisibility=default -O4 file.cpp -mprefer-vector-width=1024 -gsplit-dwarf "
             "-fno- -f -m -W ")) {
    const std::string error = ErrorOf(std::string("int a;\n//! flags -O2 ") + flag);
    EXPECT_THAT(error, HasSubstr("line 2: flag '")) << flag;
    EXPECT_THAT(error, HasSubstr("allowed are: -O0 to -O3")) << flag;
  }
  EXPECT_THAT(ErrorOf("//! flags -std=c++20", "c"), HasSubstr("'-std=c++20' is not allowed"));
  EXPECT_THAT(ErrorOf("//! flags --param -o"), HasSubstr("'--param=-o'"));
}

TEST(Flags, RefusalShowsNoControlBytes) {
  const std::string error = ErrorOf("//! flags -\x1b[31mred");
  EXPECT_THAT(error, HasSubstr("'-?[31mred'"));
  EXPECT_THAT(error, Not(HasSubstr("\x1b")));
}

TEST(Flags, NumberOfFlagsIsBounded) {
  std::string line = "//! flags";
  for (int i = 0; i < 64; ++i) line += " -O2";
  EXPECT_EQ(ErrorOf(line), "");
  EXPECT_THAT(ErrorOf(line + " -O2"), HasSubstr("more than 64 flags"));
  EXPECT_THAT(ErrorOf("//! flags -D" + std::string(300, 'A')), HasSubstr("not allowed"));
}

TEST(Flags, CompilerMustFitTheLanguage) {
  EXPECT_THAT(ErrorOf("//! compiler gcc", "cpp"), HasSubstr("line 1: compiler 'gcc'"));
  EXPECT_THAT(ErrorOf("//! compiler /tmp/g++", "cpp"), HasSubstr("use g++ or clang++"));
  EXPECT_THAT(ErrorOf("//! compiler g++", "c"), HasSubstr("use gcc or clang"));
  EXPECT_THAT(ErrorOf("//! compiler", "c"), HasSubstr("use gcc or clang"));
  EXPECT_THAT(ErrorOf("//! compiler g++\n//! compiler clang++"), HasSubstr("line 2: a second"));
}

TEST(Flags, SlipsAreToldAndProseIsNot) {
  EXPECT_THAT(ErrorOf("\n//! flag -O2"), HasSubstr("line 2: '//! flag' means nothing"));
  EXPECT_THAT(ErrorOf("//! Flags: -O2"), HasSubstr("means nothing"));
  EXPECT_EQ(ErrorOf("//! Computes softmax.\n//!\nint x;"), "");
}

TEST(Flags, EmptyAndBinaryFilesAreNotSource) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(" \n\t\n"), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(std::string_view("int x;\n\0\x7f"
                                       "ELF",
                                       12)),
              HasSubstr("line 2: the file is not source text"));
}

}  // namespace
}  // namespace assay
