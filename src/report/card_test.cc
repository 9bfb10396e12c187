#include "report/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "model/sample_verdicts.h"
#include "report/text.h"

namespace assay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr CardStyle kAscii{.colour = false, .unicode = false, .width = 80};
constexpr CardStyle kUnicode{.colour = false, .unicode = true, .width = 80};
constexpr CardStyle kColour{.colour = true, .unicode = true, .width = 80};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos) << "every line ends";
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string ReplacedAll(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string WithoutColour(const std::string& text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b')
      at = text.find('m', at);
    else
      plain += text[at];
  }
  return plain;
}

TEST(Card, Faster) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kFaster), kAscii), &R"(
+- softmax / small / float32 -------------------------------------- fused.cpp -+
|                                                                              |
|   ^ FASTER    2.51x as fast as eager                                         |
|                                                                              |
|  fused.cpp is correct, and 2.51 times as fast as eager PyTorch.              |
|                                                                              |
+- gate 1: correctness --------------------------------------------- + passed -+
|  checked      412 calls; 11 of 11 draws passed; not applicable: huge-scale   |
|  sizes        right at this size alone; --ragged NAME=LO:HI checks others    |
|  errors       at most 0.44 of what is allowed; 1.2e-07 on ordinary values    |
|  precision    float32, as required                                           |
+- gate 2: speed --------------------------------------------------- + passed -+
|  eager        4.02 ms  ####################################################  |
|  candidate    1.60 ms  ####################                                  |
|  speedup      2.51x, between 2.48x and 2.54x                                 |
|  decision     ^ faster: 9 of 9 pairs, each at least 2.48x as fast; a false   |
|               win is rarer than 1 in 260                                     |
|  rests on     9 pairs of processes x 4 rounds x 24 calls a block; the        |
|               smallest gain that could have been seen is 1.6%                |
|  peak         80% of this machine's, eager 31.9%; the peak is 1.28 ms a      |
|               call, by memory at 13.1 GB/s                                   |
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: ask for more than 2x
   assay judge problems/level1/softmax.py kernels/softmax/fused.cpp --size small --p 2
)"[1]);
}

TEST(Card, Slower) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kSlower), kAscii),
            &R"(
+- softmax / batch_size=512 / dim=4096 * 2 / float32 -------------- naive.cpp -+
|                                                                              |
|   v SLOWER    0.314x as fast as eager                                        |
|                                                                              |
|  naive.cpp is correct, but takes 3.18 times as long as eager PyTorch.        |
|                                                                              |
+- gate 1: correctness --------------------------------------------- + passed -+
|  checked      412 calls; 11 of 11 draws passed; not applicable: huge-scale   |
|  sizes        right at this size alone; --ragged NAME=LO:HI checks others    |
|  errors       at most 0.44 of what is allowed; 1.2e-07 on ordinary values    |
|  precision    float32, as required                                           |
|  note         weights were matched by order, not by name                     |
+- gate 2: speed above 1.50x ----------------------------------- x not passed -+
|  eager        4.02 ms  ################                                      |
|  candidate    12.8 ms  ####################################################  |
|  speedup      0.314x, between 0.310x and 0.317x                              |
|  decision     v slower: 9 of 9 pairs, each at most 0.317x as fast; a false   |
|               loss is rarer than 1 in 260                                    |
|  rests on     9 pairs of processes x 4 rounds x 24 calls a block; the        |
|               smallest gain that could have been seen is 1.6%                |
|                                                                              |
|  compiled     4.02 ms  ###########                                           |
|  candidate    19.1 ms  ####################################################  |
|  speedup      0.210x, between 0.207x and 0.212x                              |
|  decision     v slower: 9 of 9 pairs, each at most 0.212x as fast; a false   |
|               loss is rarer than 1 in 260                                    |
|  rests on     9 pairs of processes x 4 rounds x 24 calls a block; the        |
|               smallest gain that could have been seen is 1.6%                |
|  peak         10% of this machine's, eager 31.9%; the peak is 1.28 ms a      |
|               call, by memory at 13.1 GB/s                                   |
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: write the next version: does it beat this one?
   assay judge problems/level1/softmax.py kernels/softmax/naive_next.cpp --set batch_size=512)"
             R"( --set 'dim=4096 * 2' --against kernels/softmax/naive.cpp
)"[1]);
}

TEST(Card, Wrong) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kWrong), kAscii), &R"(
+- softmax / small / float32 --------------------------------- off_by_one.cpp -+
|                                                                              |
|   x WRONG                                                                    |
|                                                                              |
|  Outputs differ from the reference beyond the bound on the first ordinary    |
|  draw.                                                                       |
|                                                                              |
+- gate 1: correctness --------------------------------------------- x failed -+
|  checked      1 call; 0 of 1 draw passed, failed: ordinary                   |
|  errors       5422 times what is allowed; the largest is 0.0021              |
|  precision    none; float32 is required                                      |
|  first wrong  out[0, 4095]: expected 0.00021734, got 0                       |
|  share wrong  0.024% of the elements of out                                  |
|  hint         Only the last column is wrong, in every row: a loop that       |
|               stops one element early.                                       |
+- gate 2: speed ------------------------------------------------ not reached -+
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: see the failing call
   assay explain 3f2a9c01d4e7
)"[1]);
}

TEST(Card, BuildFailed) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kBuildFailed), kAscii), &R"(
+- softmax / small / float32 --------------------------------------- typo.cpp -+
|                                                                              |
|   x BUILD FAILED                                                             |
|                                                                              |
|  line 12: error: 'exqf' was not declared in this scope                       |
|                                                                              |
+- gate 1: correctness ------------------------------------------ not reached -+
+- gate 2: speed ------------------------------------------------ not reached -+
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: fix line 12 of typo.cpp, then
   assay judge problems/level1/softmax.py kernels/softmax/typo.cpp --size small
)"[1]);
}

TEST(Card, Crashed) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kCrashed), kAscii), &R"(
+- softmax / small / float32 --------------------------------------- wild.cpp -+
|                                                                              |
|   x CRASHED                                                                  |
|                                                                              |
|  SIGSEGV at address 0x10 in call 1 of gate 1.                                |
|                                                                              |
+- gate 1: correctness ----------------------------------------- not finished -+
+- gate 2: speed ------------------------------------------------ not reached -+
+- its last lines of output ---------------------------------------------------+
|  rows 512                                                                    |
|  ?[31mcolumns 4096?[0m                                                       |
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: fix wild.cpp, then
   assay judge problems/level1/softmax.py kernels/softmax/wild.cpp --size small
)"[1]);
}

TEST(Card, Foul) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kFoul), kAscii), &R"(
+- softmax / small / float32 ------------------------------ thread_behind.cpp -+
|                                                                              |
|   ! FOUL                                                                     |
|                                                                              |
|  The candidate ran while it had to be asleep.                                |
|                                                                              |
+- gate 1: correctness --------------------------------------------- + passed -+
|  checked      412 calls; 11 of 11 draws passed; not applicable: huge-scale   |
|  sizes        right at this size alone; --ragged NAME=LO:HI checks others    |
|  errors       at most 0.44 of what is allowed; 1.2e-07 on ordinary values    |
|  precision    float32, as required                                           |
+- gate 2: speed ----------------------------------------------- not finished -+
+- foul -----------------------------------------------------------------------+
|  rule         ran-while-asleep                                               |
|  seen         its processor clock advanced by 3.1 ms between freeze and      |
|               thaw, before block 4 of pair 1                                 |
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: remove what broke the rule, then
   assay judge problems/level1/softmax.py kernels/softmax/thread_behind.cpp --size small
)"[1]);
}

TEST(Card, Unsettled) {
  EXPECT_EQ(RenderCard(SampleVerdict(Outcome::kUnsettled), kAscii), &R"(
+- softmax / small / float32 -------------------------------------- jumpy.cpp -+
|                                                                              |
|   ~ UNSETTLED    1.040x as fast as eager                                     |
|                                                                              |
|  32 pairs were too noisy to say which is faster.                             |
|                                                                              |
+- gate 1: correctness --------------------------------------------- + passed -+
|  checked      412 calls; 11 of 11 draws passed; not applicable: huge-scale   |
|  sizes        right at this size alone; --ragged NAME=LO:HI checks others    |
|  errors       at most 0.44 of what is allowed; 1.2e-07 on ordinary values    |
|  precision    float32, as required                                           |
+- gate 2: speed ----------------------------------------------- x not passed -+
|  eager        4.02 ms  ####################################################  |
|  candidate    3.87 ms  ##################################################    |
|  speedup      1.040x, between 1.027x and 1.050x                              |
|  decision     ~ unsettled: 32 pairs point one way, too few or too disturbed  |
|               for a decision                                                 |
|  rests on     32 pairs of processes x 4 rounds x 24 calls a block            |
|  note         pairs differ by 9%, more than the gain that was looked for     |
|  peak         33.1% of this machine's, eager 31.9%; the peak is 1.28 ms a    |
|               call, by memory at 13.1 GB/s                                   |
+------------------------------------------------------------------------------+
|  cost         2.96 s: compile 0.84, start 0.31, fill 0.92, timed 0.71,       |
|               overhead 0.18                                                  |
|  machine      AMD EPYC 7B13, 2 cores, 2 threads a side, PyTorch 1.13.1       |
|  isolation    bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1      |
|               (memory, pids)                                                 |
|  verdict      3f2a9c01d4e7, seed 17264218839157064961                        |
+------------------------------------------------------------------------------+
   next: read the note above, then
   assay judge problems/level1/softmax.py kernels/softmax/jumpy.cpp --size small
)"[1]);
}

TEST(Card, OnAGpuThePeakIsTheGpus) {
  Verdict verdict = SampleVerdicts()[0];
  verdict.machine.gpu = "Some GPU";
  verdict.roofline->bandwidth_bytes_s = 4.1e12;
  std::string text = RenderCard(verdict, kAscii);
  EXPECT_THAT(text, HasSubstr("of this GPU's"));
  EXPECT_THAT(text, HasSubstr("4.10 TB/s"));
  verdict.roofline->regime = "compute";
  verdict.roofline->rate_operations_s = 727e12;
  verdict.roofline->instructions = "tensor_bfloat16 (wgmma m64n256k16)";
  text = RenderCard(verdict, kAscii);
  EXPECT_THAT(text, HasSubstr("TFLOP/s of tensor_bfloat16"));
  verdict.roofline->regime = "overhead";
  EXPECT_THAT(RenderCard(verdict, kAscii), HasSubstr("launch that does nothing"));
}

TEST(Card, WhatToolsSawIsShort) {
  const CardStyle wide{.colour = false, .unicode = false, .width = 140};
  Verdict verdict = SampleGpuVerdict();
  const std::string text = RenderCard(verdict, wide);
  for (const char* part :
       {"counters of one call", "divide<256>", "81% of the call's, in 1 launch",
        "DRAM 34%, memory in all 41%, multiprocessors 22%, matrix units 0%",
        "114 MB to and from DRAM, L2 hits 51%, loads use 100%, stores use 88%",
        "long_scoreboard 62%, lg_throttle 12%, wait 8%", "19% of the call's, in 2 launches",
        "memcheck     25 errors in one call", "Invalid __global__ write of size 4 bytes"})
    EXPECT_THAT(text, HasSubstr(part));
  verdict.profile = ProfileRecord{{}, "ncu wrote no report"};
  verdict.sanitizer = SanitizerRecord{"racecheck", 0, {}, ""};
  EXPECT_THAT(RenderCard(verdict, wide), HasSubstr("none         ncu wrote no report"));
  EXPECT_THAT(RenderCard(verdict, wide), HasSubstr("racecheck    no errors in one call"));
  verdict.sanitizer->failure = "it did not start";
  EXPECT_THAT(RenderCard(verdict, wide), HasSubstr("no answer: it did not start"));
  verdict.profile.reset();
  verdict.sanitizer.reset();
  for (const char* part : {"counters", "sanitizer"})
    EXPECT_EQ(RenderCard(verdict, wide).find(part), std::string::npos) << part;
}

TEST(Card, ARunWithoutPausesStandsBesideItsQuickestBlock) {
  const CardStyle wide{.colour = false, .unicode = false, .width = 140};
  Verdict verdict = SampleGpuVerdict();
  std::string text = RenderCard(verdict, wide);
  for (const char* part :
       {"without pauses", "eager        33.5 us a call in the end, 7% more than in its quickest",
        "candidate    25.0 us a call in the end, 16% more than in its quickest block (21.5",
        "MHz where short blocks had 1965 (held down: power cap)",
        "sustained    1.34x as fast as eager, after 10 s of each without a pause"})
    EXPECT_THAT(text, HasSubstr(part));
  verdict.sustained->reference.sm_mhz.clear();
  verdict.sustained->candidate.time_ns = 21'600;
  text = RenderCard(verdict, wide);
  EXPECT_THAT(text, HasSubstr("21.6 us a call from begin to end; 1702 MHz"));
  EXPECT_THAT(text, HasSubstr("sustained    1.55x as fast as eager"));
  verdict.sustained->candidate.block_ns.clear();
  EXPECT_THAT(RenderCard(verdict, wide), HasSubstr("no blocks"));
  verdict.sustained.reset();
  EXPECT_THAT(RenderCard(verdict, wide), Not(HasSubstr("without pauses")));
}

// A candidate in Python may have no kernels that can be read.
TEST(Card, ABottleneckThatCountersFoundNeedsNoKernels) {
  Verdict verdict = SampleGpuVerdict();
  verdict.kernels.clear();
  verdict.bottleneck = "memory-bound";
  EXPECT_THAT(RenderCard(verdict, kAscii), HasSubstr("bottleneck   memory-bound"));
}

TEST(Card, FitsItsWidth) {
  for (const int width : {60, 80, 100}) {
    for (const Verdict& verdict : SampleVerdicts()) {
      const auto lines =
          LinesOf(RenderCard(verdict, {.colour = false, .unicode = true, .width = width}));
      // The last line is a command to be copied whole.
      for (size_t i = 0; i + 1 < lines.size(); ++i)
        EXPECT_LE(DisplayWidth(lines[i]), width) << lines[i];
      for (size_t i = 0; i + 2 < lines.size(); ++i)
        EXPECT_EQ(DisplayWidth(lines[i]), width) << lines[i];
    }
  }
}

TEST(Card, SaysTheOutcomeInAWordFirst) {
  const std::pair<Outcome, const char*> words[] = {{Outcome::kFaster, "FASTER"},
                                                   {Outcome::kSlower, "SLOWER"},
                                                   {Outcome::kTie, "TIE"},
                                                   {Outcome::kUnsettled, "UNSETTLED"},
                                                   {Outcome::kWrong, "WRONG"},
                                                   {Outcome::kBuildFailed, "BUILD FAILED"},
                                                   {Outcome::kCrashed, "CRASHED"},
                                                   {Outcome::kTimedOut, "TIMED OUT"},
                                                   {Outcome::kOutOfMemory, "OUT OF MEMORY"},
                                                   {Outcome::kFoul, "FOUL"}};
  for (const auto& [outcome, word] : words)
    EXPECT_THAT(LinesOf(RenderCard(SampleVerdict(outcome), kUnicode)).at(2), HasSubstr(word));
}

TEST(Card, ColourAddsNothingButColour) {
  for (const Verdict& verdict : SampleVerdicts()) {
    const std::string coloured = RenderCard(verdict, kColour);
    EXPECT_THAT(coloured, HasSubstr("\x1b["));
    EXPECT_EQ(WithoutColour(coloured), RenderCard(verdict, kUnicode));
    EXPECT_THAT(RenderCard(verdict, kUnicode), Not(HasSubstr("\x1b")));
  }
}

TEST(Card, UnicodeAndAsciiSayTheSame) {
  const std::pair<const char*, const char*> glyphs[] = {
      {"─", "-"}, {"│", "|"}, {"┌", "+"}, {"┐", "+"}, {"├", "+"}, {"┤", "+"}, {"└", "+"},
      {"┘", "+"}, {"·", "/"}, {"×", "x"}, {"▲", "^"}, {"▼", "v"}, {"✔", "+"}, {"✘", "x"}};
  for (const Verdict& verdict : SampleVerdicts()) {
    std::string text = RenderCard(verdict, kUnicode);
    for (const auto& [from, to] : glyphs) text = ReplacedAll(text, from, to);
    // A bar of half a column has no counterpart.
    text = ReplacedAll(ReplacedAll(text, "█", "#"), "▌", " ");
    EXPECT_EQ(text, RenderCard(verdict, kAscii));
  }
}

TEST(Card, ForeignTextCannotSteerTheTerminal) {
  const std::string attack = "\x1b[2J\x1b]8;;http://x\a\u202E\n\rok";
  Verdict verdict = SampleVerdict(Outcome::kFoul);
  verdict.message = verdict.foul->rule = verdict.foul->seen = verdict.problem.name = attack;
  verdict.correctness->hint = verdict.machine.cpu = verdict.machine.isolation = verdict.id = attack;
  verdict.candidate.path = "/tmp/" + attack;
  verdict.toolchain["pytorch"] = attack;
  for (const Outcome outcome :
       {Outcome::kFoul, Outcome::kCrashed, Outcome::kWrong, Outcome::kFaster}) {
    verdict.outcome = outcome;
    verdict.log = attack;
    const std::string text = RenderCard(verdict, kUnicode);
    for (const char letter : text)
      EXPECT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= 0x20);
    EXPECT_THAT(text, Not(HasSubstr("\u202E")));
  }
}

TEST(Card, ShowsTheThresholdTheNoteAndTheOtherSide) {
  Verdict verdict = SampleVerdict(Outcome::kTie);
  verdict.speed->threshold = 2;
  verdict.speed->headline = "against";
  verdict.speed->baselines = {{"against", verdict.speed->baselines.at("eager")}};
  verdict.speed->baselines["against"].note = "weights were matched by order";
  const std::string text = RenderCard(verdict, kUnicode);
  EXPECT_THAT(text, HasSubstr("gate 2: speed above 2.00x"));
  EXPECT_THAT(text, HasSubstr("as fast as other"));
  EXPECT_THAT(text, HasSubstr("note         weights were matched by order"));
}

TEST(Card, SpecialValuesHaveALineOfTheirOwn) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  EXPECT_THAT(RenderCard(verdict, kUnicode), Not(HasSubstr("special values")));
  verdict.correctness->differs_on_special_values = "2 elements are NaN";
  EXPECT_THAT(RenderCard(verdict, kUnicode),
              HasSubstr("special      differs on special values, which were not demanded: 2"));
}

TEST(Card, DoesNotSayTheSameTwice) {
  Verdict wrong = SampleVerdict(Outcome::kWrong);
  wrong.message = "wrong: " + wrong.correctness->hint;
  EXPECT_THAT(RenderCard(wrong, kUnicode), Not(HasSubstr("hint  ")));
  Verdict foul = SampleVerdict(Outcome::kFoul);
  foul.message = foul.foul->seen;
  EXPECT_THAT(RenderCard(foul, kUnicode), Not(HasSubstr("seen  ")));
}

TEST(Card, SpeedThatWasNotAskedForIsNotUnfinished) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  verdict.speed.reset();
  EXPECT_THAT(RenderCard(verdict, kUnicode), HasSubstr(" not run ─┤"));
}

TEST(Card, ToleratesNumbersThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  verdict.correctness->error_ratio = nan;
  verdict.correctness->max_abs_error = nan;
  verdict.correctness->first_mismatch->got = nan;
  EXPECT_THAT(RenderCard(verdict, kUnicode), HasSubstr("errors       beyond any bound  "));
  EXPECT_THAT(RenderCard(verdict, kUnicode), HasSubstr("got nan"));
  verdict = SampleVerdict(Outcome::kTie);
  BaselineResult& eager = verdict.speed->baselines["eager"];
  eager.time_ns = eager.candidate_time_ns = eager.speedup = eager.ci_low = eager.ci_high = nan;
  EXPECT_THAT(RenderCard(verdict, kUnicode), HasSubstr("between ? and ?"));
}

TEST(Card, OnlyTheLastLinesThatACandidatePrinted) {
  Verdict verdict = SampleVerdict(Outcome::kCrashed);
  verdict.log.clear();
  for (int i = 1; i <= 1000; ++i) verdict.log += "line " + std::to_string(i) + "\n";
  const std::string text = RenderCard(verdict, kUnicode);
  EXPECT_THAT(text, HasSubstr("│  line 996 "));
  EXPECT_THAT(text, HasSubstr("│  line 1000 "));
  EXPECT_THAT(text, Not(HasSubstr("line 995")));
}

TEST(Card, OffersWhatACandidatePrinted) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  verdict.log = "a warning of the compiler\n" + std::string(kPrintedHeading) + "x is 3\n";
  EXPECT_THAT(RenderCard(verdict, kUnicode), HasSubstr("│  x is 3 "));
  EXPECT_THAT(RenderCard(verdict, kUnicode), Not(HasSubstr("a warning")));
  verdict.outcome = Outcome::kTie;
  EXPECT_THAT(RenderCard(verdict, kUnicode), HasSubstr("printed      1 line: \"log\""));
  verdict.log = "a warning of the compiler\n";
  EXPECT_THAT(RenderCard(verdict, kUnicode), Not(HasSubstr("printed")));
}

TEST(Card, NarrowAndWideRequestsAreHeldInBounds) {
  const Verdict verdict = SampleVerdict(Outcome::kFaster);
  EXPECT_EQ(DisplayWidth(LinesOf(RenderCard(verdict, {.width = 5})).front()), 60);
  EXPECT_EQ(DisplayWidth(LinesOf(RenderCard(verdict, {.width = 500})).front()), 100);
}

}  // namespace
}  // namespace assay
