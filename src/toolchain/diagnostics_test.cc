#include <gmock/gmock.h>

#include "toolchain/build.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;

TEST(Diagnostics, GccErrorInTheCandidate) {
  EXPECT_EQ(FirstDiagnostic("/candidate/e.cpp: In function ‘int f()’:\n"
                            "/candidate/e.cpp:2:18: error: ‘thing’ was not declared\n"
                            "/candidate/e.cpp:9:1: error: second\n"),
            "line 2: 'thing' was not declared");
}

TEST(Diagnostics, ClangErrorInTheCandidate) {
  EXPECT_EQ(FirstDiagnostic("/candidate/e.cpp:1:8: warning: unused [-Wunused]\n"
                            "/candidate/e.cpp:2:18: error: use of undeclared identifier 'thing'\n"
                            "1 warning and 1 error generated.\n"),
            "line 2: use of undeclared identifier 'thing'");
}

TEST(Diagnostics, NvrtcErrorInTheCandidate) {
  EXPECT_EQ(
      FirstDiagnostic("/candidate/kernel.cu(12): warning #177-D: variable \"y\" was declared\n"
                      "/candidate/kernel.cu(14): error: identifier \"thing\" is undefined\n"
                      "      thing = 1;\n      ^\n\n1 error detected in the compilation\n"
                      "NVRTC: NVRTC_ERROR_COMPILATION\n"),
      "line 14: identifier \"thing\" is undefined");
}

TEST(Diagnostics, NvrtcMissesAKernelThatIsLaunched) {
  EXPECT_EQ(FirstDiagnostic("__nv_name_map(2): error: identifier \"row_max\" is undefined\n"
                            "  #pragma nv_mangled_name row_max\n"),
            "a kernel that is launched is not there: identifier \"row_max\" is undefined");
}

TEST(Diagnostics, MissingIncludeAndErrorDirective) {
  EXPECT_EQ(
      FirstDiagnostic("/candidate/b.cpp:1:10: fatal error: none.h: No such file or directory\n"
                      "compilation terminated.\n"),
      "line 1: none.h: No such file or directory");
  EXPECT_EQ(FirstDiagnostic("/candidate/b.cpp:3:2: error: #error needs AVX2\n"),
            "line 3: #error needs AVX2");
}

// g++ prints the candidate's line before the error in the header, among inclusions and other
// instantiations.
TEST(Diagnostics, GccErrorInATemplateNamesTheCandidatesLine) {
  EXPECT_EQ(
      FirstDiagnostic(
          "In file included from /usr/include/c++/12/bits/stl_algobase.h:71,\n"
          "                 from /usr/include/c++/12/vector:60,\n"
          "                 from /candidate/a.cpp:1:\n"
          "/usr/include/c++/12/bits/predefined_ops.h: In instantiation of ‘bool operator()(_It)’:\n"
          "/usr/include/c++/12/bits/stl_algo.h:1809:14:   required from ‘void std::sort(_It)’\n"
          "/candidate/a.cpp:4:38:   required from here\n"
          "/usr/include/c++/12/bits/predefined_ops.h:45:23: error: no match for ‘operator<’\n"),
      "line 4: no match for 'operator<' (in predefined_ops.h, line 45)");
}

// clang++ prints it after the error.
TEST(Diagnostics, ClangErrorInATemplateNamesTheCandidatesLine) {
  EXPECT_EQ(
      FirstDiagnostic(
          "In file included from /candidate/a.cpp:1:\n"
          "In file included from /usr/bin/../include/c++/12/vector:60:\n"
          "/usr/bin/../include/c++/12/ops.h:45:23: error: invalid operands ('S' and 'S')\n"
          "/usr/bin/../include/c++/12/heap.h:232:8: note: in instantiation of 'Less<S>' requested\n"
          "/candidate/a.cpp:4:34: note: in instantiation of 'std::sort<S>' requested here\n"
          "/candidate/a.cpp:9:34: error: another\n"),
      "line 4: invalid operands ('S' and 'S') (in ops.h, line 45)");
}

TEST(Diagnostics, ErrorInAHeaderNamesTheInclusion) {
  EXPECT_EQ(FirstDiagnostic("In file included from /candidate/f.cpp:7:\n"
                            "/assay/include/assay/kernel.h:30:5: error: static assertion failed\n"),
            "line 7: static assertion failed (in kernel.h, line 30)");
  EXPECT_EQ(FirstDiagnostic("/assay/include/assay/kernel.h:30:5: error: broken\n"),
            "kernel.h line 30: broken");
}

TEST(Diagnostics, LinkerErrorsNameTheSymbol) {
  EXPECT_EQ(FirstDiagnostic("/usr/bin/ld: /tmp/ccRA.o: in function `f()':\n"
                            "c.cpp:(.text+0xa): undefined reference to `g(int)'\n"
                            "collect2: error: ld returned 1 exit status\n"),
            "undefined reference to 'g(int)'");
  EXPECT_EQ(FirstDiagnostic("/usr/bin/ld: cannot find -lomp: No such file or directory\n"
                            "clang: error: linker command failed with exit code 1 (use -v)\n"),
            "the linker cannot find -lomp");
  EXPECT_EQ(FirstDiagnostic("/usr/bin/ld: /tmp/b.o: in function `f':\n"
                            "b.c:(.text+0x0): multiple definition of `f'; /tmp/a.o: first here\n"),
            "multiple definition of 'f'");
  EXPECT_EQ(FirstDiagnostic("ld.lld: error: undefined symbol: g(int)\n"),
            "undefined reference to 'g(int)'");
}

TEST(Diagnostics, ToolsOwnErrors) {
  EXPECT_EQ(FirstDiagnostic("cc1plus: error: bad value ‘zork’ for ‘-march=’ switch\n"),
            "bad value 'zork' for '-march=' switch");
  EXPECT_EQ(FirstDiagnostic("g++: fatal error: Killed signal terminated program cc1plus\n"),
            "Killed signal terminated program cc1plus");
  EXPECT_EQ(FirstDiagnostic("error: unknown target CPU 'zork'\nnote: valid are a b\n"),
            "unknown target CPU 'zork'");
  EXPECT_EQ(FirstDiagnostic("/candidate/a.cpp:3:1: internal compiler error: Segmentation fault\n"),
            "line 3: internal compiler error: Segmentation fault");
}

TEST(Diagnostics, FallsBackToTheFirstLineThatSaysSomething) {
  EXPECT_EQ(FirstDiagnostic("\n  \nvirtual memory exhausted: Cannot allocate memory\nmore\n"),
            "virtual memory exhausted: Cannot allocate memory");
  EXPECT_EQ(FirstDiagnostic("/candidate/a.cpp:1:1: warning: odd\nKilled\n"), "Killed");
  EXPECT_EQ(FirstDiagnostic("/candidate/a.cpp:1:1: warning: odd\n"), "a.cpp:1:1: warning: odd");
  EXPECT_EQ(FirstDiagnostic(""), "the compiler failed and said nothing");
  EXPECT_EQ(FirstDiagnostic("\n\n"), "the compiler failed and said nothing");
}

TEST(Diagnostics, MessagesAreBoundedAndHoldNoEscapes) {
  const std::string wall =
      FirstDiagnostic("/candidate/a.cpp:1:1: error: " + std::string(100'000, 'x') + "\n");
  EXPECT_THAT(wall, SizeIs(Le(size_t{303})));
  EXPECT_THAT(wall, HasSubstr("line 1: xxx"));
  const std::string colour =
      FirstDiagnostic("/candidate/a.cpp:1:1: error: \x1b[31m\x1b]0;t\x07 red\x7f\n");
  EXPECT_THAT(colour, Not(HasSubstr("\x1b")));
  EXPECT_THAT(colour, Not(HasSubstr("\x07")));
  EXPECT_THAT(colour, HasSubstr("red"));
}

TEST(Diagnostics, CutsBetweenCharacters) {
  std::string text = "/candidate/a.cpp:1:1: error: ";
  for (int i = 0; i < 200; ++i) text += "é";
  const std::string message = FirstDiagnostic(text);
  ASSERT_TRUE(message.ends_with("..."));
  // Without its end mark, what is left is whole two-byte characters behind the ASCII prefix.
  EXPECT_EQ((message.size() - 3 - std::string("line 1: ").size()) % 2, 0u);
}

TEST(Diagnostics, AMessageTellsItsLine) {
  EXPECT_EQ(LineOfMessage("line 12: flag '-x' is not allowed here"), 12);
  EXPECT_EQ(LineOfMessage("vector line 90: no member"), 0) << "of another file";
  EXPECT_EQ(LineOfMessage("line 12 is mentioned"), 0);
  EXPECT_EQ(LineOfMessage("line : x"), 0);
  EXPECT_EQ(LineOfMessage(""), 0);
}

TEST(Diagnostics, HugeLineNumbersAndOddColonsDoNoHarm) {
  EXPECT_EQ(FirstDiagnostic("a:99999999999999999999: error: x"), "x");
  EXPECT_EQ(FirstDiagnostic(":1: error: x"), "x");
  EXPECT_THAT(FirstDiagnostic(":::1: error: x"), HasSubstr("x"));
  EXPECT_EQ(FirstDiagnostic("::"), "::");
}

// Found by the fuzzer: a candidate can have the assembler print lines that look like an error
// without a text, and a verdict had an empty message.
TEST(Diagnostics, AnErrorWithoutATextIsPassedOver) {
  const std::string silence = "the compiler failed and said nothing";
  EXPECT_EQ(FirstDiagnostic(": fatal error: "), ": fatal error: ");
  EXPECT_EQ(FirstDiagnostic("as: error: \n/candidate/kernel.cpp:3:1: error: real\n"),
            "line 3: real");
  EXPECT_EQ(FirstDiagnostic("as: error: /candidate/\n"), "as: error: ");
  EXPECT_EQ(FirstDiagnostic("/candidate/"), silence);
  EXPECT_EQ(FirstDiagnostic("/candidate//assay/include/\n  \n"), silence);
}

// What nvcc 11.8 printed, and the wording of later ones.
TEST(Diagnostics, CudasErrorsNameTheCandidatesLine) {
  EXPECT_EQ(FirstDiagnostic("/candidate/kernel.cu(2): warning #177-D: variable \"unused\" was "
                            "declared but never referenced\n\n"
                            "/candidate/kernel.cu(3): error: identifier \"undeclared\" is "
                            "undefined\n\n1 error detected in the compilation of ...\n"),
            "line 3: identifier \"undeclared\" is undefined");
  EXPECT_EQ(FirstDiagnostic("/candidate/kernel.cu(4): error #77-D: this declaration has no storage "
                            "class or type specifier\n"),
            "line 4: this declaration has no storage class or type specifier");
  EXPECT_EQ(FirstDiagnostic("/candidate/kernel.cu(1): catastrophic error: cannot open source file "
                            "\"cute/x.h\"\n"),
            "line 1: cannot open source file \"cute/x.h\"");
  const std::string failed = "/assay/include/assay/kernel.h(395): error: static assertion failed\n";
  const std::string during =
      "          detected during instantiation of class \"assay::detail::Entry<>\" ";
  EXPECT_EQ(FirstDiagnostic(failed + during + "\n/candidate/kernel.cu(7): here\n"),
            "line 7: static assertion failed (in kernel.h, line 395)");
  EXPECT_EQ(FirstDiagnostic(failed + during + "at line 9 of /candidate/kernel.cu\n"),
            "line 9: static assertion failed (in kernel.h, line 395)");
}

TEST(Diagnostics, WarningsDoNotHideWhatCudasToolsSay) {
  EXPECT_EQ(FirstDiagnostic("/candidate/kernel.cu(2): warning #177-D: variable \"unused\" was "
                            "declared but never referenced\n\n"
                            "ptxas error   : Entry function '_Z1kPf' uses too much shared data "
                            "(0x61a80 bytes, 0xc000 max)\n"),
            "ptxas: Entry function '_Z1kPf' uses too much shared data (0x61a80 bytes, 0xc000 max)");
  EXPECT_EQ(FirstDiagnostic("ptxas /tmp/tmpxft_1.ptx, line 12; error   : Unknown modifier '.x'\n"
                            "ptxas fatal   : Ptx assembly aborted due to errors\n"),
            "ptxas: Unknown modifier '.x'");
  EXPECT_EQ(FirstDiagnostic("nvcc fatal   : Unsupported gpu architecture 'compute_90a'\n"),
            "nvcc: Unsupported gpu architecture 'compute_90a'");
}

TEST(CompilerErrors, HaveTheCandidatesLinesOnceEach) {
  const auto errors = CompilerErrors(
      "/candidate/kernel.cpp: In function 'f':\n"
      "/candidate/kernel.cpp:6:5: error: expected ';'\n"
      "/candidate/kernel.cpp:6:45: error: expected ';'\n"
      "/candidate/kernel.cpp:9:2: error: 'q' was not declared\n"
      "/candidate/kernel.cpp:12:2: error: one too many\n",
      2);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].line, 6);
  EXPECT_EQ(errors[0].message, "expected ';'");
  EXPECT_EQ(errors[1].line, 9);
  EXPECT_TRUE(CompilerErrors("collect2: error: ld returned 1 exit status\n", 4).empty());
}

}  // namespace
}  // namespace assay
