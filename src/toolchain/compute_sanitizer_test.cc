#include "toolchain/compute_sanitizer.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

// By Compute Sanitizer 2025.3.1 on an H200, with two of many threads.
constexpr const char* kOutOfBounds =
    R"(========= COMPUTE-SANITIZER
rows 512
========= Invalid __global__ write of size 4 bytes
=========     at k(float *, int)+0x90 in oob.cu:3
=========     by thread (254,0,0) in block (3,0,0)
=========     Access to 0x7fc6dc800ff8 is out of bounds
=========     and is 89 bytes after the nearest allocation at 0x7fc6dc800000 of size 4,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8d12] in oob
=========
========= Invalid __global__ write of size 4 bytes
=========     at k(float *, int)+0x90 in oob.cu:3
=========     by thread (255,0,0) in block (3,0,0)
=========     Access to 0x7fc6dc800ffc is out of bounds
=========     and is 93 bytes after the nearest allocation at 0x7fc6dc800000 of size 4,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8d12] in oob
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to )"
    R"("unspecified launch failure" on CUDA API call to cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: main [0x8d17] in oob
=========
unspecified launch failure
========= ERROR SUMMARY: 25 errors
========= ERROR SUMMARY: 22 errors were not printed. )"
    R"(Use --print-limit option to adjust the number of printed errors
)";

TEST(SanitizerOutput, AnAccessOutOfBoundsIsOneFindingHoweverManyThreadsMakeIt) {
  const SanitizerRecord record = ReadSanitizerOutput("memcheck", kOutOfBounds);
  EXPECT_EQ(record.tool, "memcheck");
  EXPECT_EQ(record.errors, 25);
  EXPECT_EQ(record.failure, "");
  ASSERT_EQ(record.findings.size(), 2u);
  EXPECT_EQ(
      record.findings[0],
      "Invalid __global__ write of size 4 bytes at k(float *, int)+0x90 in oob.cu:3 by thread "
      "(254,0,0) in block (3,0,0) Access to 0x7fc6dc800ff8 is out of bounds and is 89 bytes "
      "after the nearest allocation at 0x7fc6dc800000 of size 4,000 bytes");
  EXPECT_THAT(record.findings[1], HasSubstr("cudaErrorLaunchFailure"));
}

TEST(SanitizerOutput, RacesAreCounted) {
  const SanitizerRecord record = ReadSanitizerOutput("racecheck", R"(========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(const float *, float *)+0x90
=========     and Read access at sum(const float *, float *)+0xb0 [124 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
)");
  EXPECT_EQ(record.errors, 1);
  EXPECT_THAT(record.findings,
              ElementsAre("Error: Race reported between Write access at sum(const float *, float "
                          "*)+0x90 and Read access at sum(const float *, float *)+0xb0 [124 "
                          "hazards]"));
}

TEST(SanitizerOutput, NothingFoundIsNoFailure) {
  const SanitizerRecord record = ReadSanitizerOutput(
      "memcheck", "========= COMPUTE-SANITIZER\ndone\n========= ERROR SUMMARY: 0 errors\n");
  EXPECT_EQ(record.errors, 0);
  EXPECT_THAT(record.findings, IsEmpty());
  EXPECT_EQ(record.failure, "");
}

TEST(SanitizerOutput, WithoutASummaryNothingIsSaidOfTheCandidate) {
  bool silent = false;
  EXPECT_FALSE(ReadSanitizerOutput("memcheck", "", &silent).failure.empty());
  EXPECT_TRUE(silent);
  ReadSanitizerOutput("memcheck", "========= Error: no device", &silent);
  EXPECT_FALSE(silent) << "it gives a reason";
  const SanitizerRecord record = ReadSanitizerOutput(
      "memcheck",
      "========= COMPUTE-SANITIZER\n========= Error: Target application terminated before first "
      "instrumented API call\n");
  EXPECT_EQ(record.failure,
            "compute-sanitizer says: Error: Target application terminated before first "
            "instrumented API call");
  EXPECT_THAT(record.findings, IsEmpty());
  EXPECT_EQ(record.errors, 0);
}

TEST(SanitizerOutput, FindingsAreFewAndShort) {
  std::string output;
  for (int i = 0; i < 50; ++i)
    output += "========= Invalid " + std::string(1000, 'x') + std::to_string(i) + "\n=========\n";
  output += "========= ERROR SUMMARY: 50 errors\n";
  const SanitizerRecord record = ReadSanitizerOutput("memcheck", output);
  EXPECT_EQ(record.errors, 50);
  EXPECT_EQ(record.findings.size(), 5u);
  EXPECT_EQ(record.findings[0].size(), 300u);
}

TEST(SanitizerCommand, RunsTheToolThatIsAskedFor) {
  const auto command = SanitizerCommand("/opt/sanitizer", "racecheck", {"/assay/native_host", "x"});
  EXPECT_EQ(std::vector<std::string>(command.begin(), command.begin() + 3),
            std::vector<std::string>({"/opt/sanitizer", "--tool", "racecheck"}));
  EXPECT_EQ(std::vector<std::string>(command.end() - 2, command.end()),
            std::vector<std::string>({"/assay/native_host", "x"}));
  EXPECT_THAT(command, Not(Contains("--report-api-errors")));  // memcheck's alone
  EXPECT_THAT(SanitizerCommand("/opt/sanitizer", "memcheck", {}),
              IsSupersetOf({"memcheck", "--report-api-errors"}));
}

}  // namespace
}  // namespace assay
