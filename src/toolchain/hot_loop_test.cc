#include "toolchain/hot_loop.h"

#include <gmock/gmock.h>

#include "toolchain/lines.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// A listing of one kernel: a line is an instruction, or a label that ends with a colon.
std::string ListingOf(std::string_view body) {
  std::string listing = "\t.section\t.text.k,\"ax\",@progbits\nk:\n.text.k:\n";
  int address = 0;
  while (!body.empty()) {
    const std::string line(TrimSpace(TakeLine(body)));
    if (line.empty()) continue;
    char number[32];
    snprintf(number, sizeof number, "/*%04x*/ ", 16 * address);
    if (line.ends_with(':')) {
      listing += line + "\n";
    } else {
      listing += number + line + " ;\n";
      ++address;
    }
  }
  return listing;
}

std::vector<std::string> AddressesOf(const HotLoop& loop) {
  std::vector<std::string> addresses;
  for (const ListedInstruction& line : loop.lines) addresses.emplace_back(line.address);
  return addresses;
}

HotLoop Only(const std::string& listing) {
  const auto loops = FindHotLoops(listing);
  EXPECT_THAT(loops, SizeIs(1));
  return loops.empty() ? HotLoop() : loops.front();
}

// As ptxas writes the wait for a tile: the first try stands in the loop, and the others beyond the
// kernel's end, from where a branch leads back into the middle.
constexpr std::string_view kWaits = R"(
    S2R R0, SR_TID.X
    .L_tile:
    MOV R2, RZ
    HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT
    .L_key:
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3
    @!P0 BRA `(.L_slow)
    .L_ready:
    HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24
    HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0
    WARPGROUP.DEPBAR.LE gsb0, 0x0
    @P1 BRA `(.L_key)
    STG.E [R8.64], R24
    @P2 BRA `(.L_tile)
    EXIT
    .L_slow:
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3
    @!P0 BRA `(.L_slow)
    BRA `(.L_ready)
)";

TEST(HotLoop, AWaitsSlowHalfBelongsToTheLoopAroundIt) {
  const std::string listing = ListingOf(kWaits);
  const HotLoop loop = Only(listing);
  EXPECT_EQ(loop.kernel, "k");
  EXPECT_EQ(loop.kernel_instructions, 15u);
  EXPECT_EQ(loop.chosen_by, "multiply");
  EXPECT_THAT(AddressesOf(loop),
              ElementsAre("0030", "0040", "0050", "0060", "0070", "0080", "00c0", "00d0", "00e0"));
  EXPECT_THAT(loop.marks, ElementsAre(Pair("wait", 3), Pair("multiply", 2)));
}

TEST(HotLoop, ProductsOfMatricesOutweighArithmeticAndThatOutweighsMoves) {
  const std::string products = R"(
      .L_sums:
      FFMA R1, R1, R1, R1
      FFMA R1, R1, R1, R1
      @P0 BRA `(.L_sums)
      .L_products:
      HMMA.16816.F32 R4, R8, R10, R4
      @P0 BRA `(.L_products)
      EXIT)";
  const std::string first = ListingOf(products);
  EXPECT_THAT(AddressesOf(Only(first)), ElementsAre("0030", "0040"));
  const std::string moves = R"(
      .L_copy:
      LDG.E R4, [R2.64]
      STG.E [R6.64], R4
      @P0 BRA `(.L_copy)
      .L_sum:
      FADD R1, R1, R2
      BRA P0, `(.L_sum)
      EXIT)";
  const std::string second = ListingOf(moves);
  EXPECT_EQ(Only(second).chosen_by, "arithmetic");
  EXPECT_THAT(AddressesOf(Only(second)), ElementsAre("0030", "0040"));
  const std::string third = ListingOf(moves.substr(0, moves.find(".L_sum")) + "EXIT");
  EXPECT_EQ(Only(third).chosen_by, "load");
}

// Both halves of a branch are in the loop, and threads meet where BSSY says.
TEST(HotLoop, HalvesThatPartAreOfTheLoop) {
  const std::string listing = ListingOf(R"(
      .L_loop:
      BSSY B0, `(.L_meet)
      @P0 BRA `(.L_other)
      FADD R1, R1, R2
      BSYNC B0
      .L_other:
      FMUL R1, R1, R2
      BSYNC B0
      .L_meet:
      @P1 BRA `(.L_loop)
      EXIT)");
  EXPECT_THAT(Only(listing).lines, SizeIs(7));
}

TEST(HotLoop, AKernelWithoutALoopIsShownWhole) {
  const std::string listing = ListingOf("LDG.E R0, [R2.64]\nSTG.E [R4.64], R0\nEXIT\nBRA `(.L_x)");
  const HotLoop loop = Only(listing);
  EXPECT_EQ(loop.chosen_by, "");
  EXPECT_THAT(loop.lines, SizeIs(4));
  const std::string waits = ListingOf(kWaits);
  EXPECT_THAT(WholeKernels(waits).at(0).lines, SizeIs(15));
}

TEST(HotLoop, AKernelAfterAnotherHasLabelsOfItsOwn) {
  const std::string one = ListingOf(".L_a:\nFADD R1, R1, R1\n@P0 BRA `(.L_a)\nEXIT");
  const std::string two = one + ListingOf("HMMA R4, R8, R10, R4\n@P0 BRA `(.L_a)\nEXIT");
  const auto loops = FindHotLoops(two);
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(loops[0].lines, SizeIs(2));
  EXPECT_EQ(loops[1].chosen_by, "");
}

TEST(HotLoop, WhatIsNoListingHasNone) {
  for (const char* text : {"", "nvdisasm fatal: no\n", "\t.section\t.text.k,\"ax\"\n.L_a:\n",
                           "/*0000*/ BRA `(.L_a) ;\n"})
    EXPECT_THAT(FindHotLoops(text), IsEmpty()) << text;
  // Branches to nowhere, a loop that nothing enters, an operand without an end.
  const std::string odd = ListingOf("BRA `(.L_none)\n.L_a:\nBRA `(.L_a)\nBSYNC B1\nBRA `(.L_a");
  EXPECT_EQ(Only(odd).chosen_by, "");
}

TEST(HotLoop, MarksSayWhatALineIsFor) {
  EXPECT_EQ(MarkOf("HGMMA.64x256x16.F32.BF16"), "multiply");
  EXPECT_EQ(MarkOf("FFMA"), "arithmetic");
  EXPECT_EQ(MarkOf("MUFU.EX2"), "special");
  EXPECT_EQ(MarkOf("UTMALDG.3D"), "copy");
  EXPECT_EQ(MarkOf("LDGSTS.E.BYPASS.128"), "copy");
  EXPECT_EQ(MarkOf("LDL.64"), "spill");
  EXPECT_EQ(MarkOf("SYNCS.PHASECHK.TRANS64.TRYWAIT"), "wait");
  EXPECT_EQ(MarkOf("SYNCS.ARRIVE.TRANS64.A1T0"), "signal");
  EXPECT_EQ(MarkOf("WARPGROUP.DEPBAR.LE"), "wait");
  EXPECT_EQ(MarkOf("WARPGROUP.ARRIVE"), "signal");
  EXPECT_EQ(MarkOf("BAR.SYNC.DEFER_BLOCKING"), "wait");
  EXPECT_EQ(MarkOf("BAR.ARV"), "signal");
  EXPECT_EQ(MarkOf("LDGDEPBAR"), "signal");
  EXPECT_EQ(MarkOf("IADD3"), "");
}

}  // namespace
}  // namespace assay
