#include "toolchain/sass.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// In the form in which nvdisasm 11.8 and newer write listings.
constexpr std::string_view kListing =
    R"(        .headerflags        @"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_SM90"
        .elftype        @"ET_EXEC"


//--------------------- .text._Z4rowsPKfPf        --------------------------
        .section        .text._Z4rowsPKfPf,"ax",@progbits
        .align        128
        .global         _Z4rowsPKfPf
        .type           _Z4rowsPKfPf,@function
        .other          _Z4rowsPKfPf,@"STO_CUDA_ENTRY STV_DEFAULT"
_Z4rowsPKfPf:
.text._Z4rowsPKfPf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R3, SR_TID.X ;
        /*0020*/              @!P0 LDG.E.CONSTANT R11, [R8.64] ;
        /*0030*/               @P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0040*/                   FFMA R0, R4, R5, R6 ;
        /*0050*/                   MUFU.EX2 R0, R0 ;
        /*0060*/                   CALL.REL.NOINC `($_Z4rowsPKfPf$_Z1ff) ;
        /*0070*/                   STG.E [R8.64], R0 ;
        /*0080*/                   EXIT ;
$_Z4rowsPKfPf$_Z1ff:
        /*0090*/              @!PT LDS RZ, [RZ] ;
.L_x_0:
        /*00a0*/                   BRA `(.L_x_0);
        /*00b0*/                   NOP;

//--------------------- .text.product             --------------------------
        .section        .text.product,"ax",@progbits
product:
.text.product:
        /*0000*/                   UTMALDG.2D [UR8], [UR6] ;
        /*0010*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0020*/              @P1  SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R2], R3 ;
        .section        .nv.constant0.product,"a",@progbits
        /*0000*/         .byte        0x00, 0x00, 0x00, 0x00
)";

TEST(Sass, InstructionsAreCountedByKernelAndKind) {
  const auto mixes = ParseListing(kListing);
  ASSERT_EQ(mixes.size(), 2u);
  const InstructionMix& rows = mixes.at("_Z4rowsPKfPf");
  EXPECT_THAT(rows.counts,
              UnorderedElementsAre(Pair("other", 2), Pair("global_load", 2), Pair("float32", 1),
                                   Pair("special", 1), Pair("branch", 3), Pair("global_store", 1),
                                   Pair("shared", 1)));
  EXPECT_EQ(rows.widest_load_bytes, 16);
  const InstructionMix& product = mixes.at("product");
  EXPECT_THAT(product.counts,
              UnorderedElementsAre(Pair("async_copy", 1), Pair("matrix", 1), Pair("barrier", 1)));
  EXPECT_EQ(product.widest_load_bytes, 0);
}

TEST(Sass, KindsGoByTheNameInFrontOfTheDots) {
  EXPECT_EQ(InstructionKind("HMMA.16816.F32.BF16"), "matrix");
  EXPECT_EQ(InstructionKind("UTCHMMA"), "matrix");
  EXPECT_EQ(InstructionKind("LDGSTS.E.BYPASS.128"), "async_copy");
  EXPECT_EQ(InstructionKind("LDL.LU"), "local");
  EXPECT_EQ(InstructionKind("HFMA2.MMA"), "float16");
  EXPECT_EQ(InstructionKind("DFMA"), "float64");
  EXPECT_EQ(InstructionKind("F2FP.BF16.F32.PACK_AB"), "conversion");
  EXPECT_EQ(InstructionKind("RED.E.ADD.F32"), "atomic");
  EXPECT_EQ(InstructionKind("S2R"), "other");
  EXPECT_EQ(InstructionKind(""), "other");
}

TEST(Sass, WhatIsNoListingHasNone) {
  EXPECT_THAT(ParseListing(""), IsEmpty());
  EXPECT_THAT(ParseListing("/*0000*/ FFMA R0, R0 ;\n"), IsEmpty());  // of no section
  EXPECT_THAT(ParseListing("nvdisasm fatal   : cannot open\n\n\n"), IsEmpty());
  const auto mixes = ParseListing("\t.section\t.text.k,\"ax\"\n/*0000\n/*0010*/\n@P0\n");
  EXPECT_THAT(mixes.at("k").counts, IsEmpty());
}

TEST(Sass, NarrowLoads) {
  const auto widest = [](std::string_view load) {
    return ParseListing("\t.section\t.text.k,\"ax\"\n/*0000*/ " + std::string(load) + " R0 ;\n")
        .at("k")
        .widest_load_bytes;
  };
  EXPECT_EQ(widest("LDG.E.U8.CONSTANT"), 1);
  EXPECT_EQ(widest("LDG.E.S16"), 2);
  EXPECT_EQ(widest("LDG.E"), 4);
  EXPECT_EQ(widest("LD.E.64"), 8);
  EXPECT_EQ(widest("LDG.E.ENL2.256.CONSTANT"), 32);
}

}  // namespace
}  // namespace assay
