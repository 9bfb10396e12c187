#include "toolchain/native_loop.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kSource = "/candidate/kernel.cpp";

TEST(NativeLoop, NamesTheLoopThatCalls) {
  const NativeCode code = ReadNativeListing(R"(
0000000000001110 <softmax(float const*)>:
softmax(float const*):
/candidate/kernel.cpp:18
    1200: vmovss xmm0,DWORD PTR [rbx]
    1204: add    rbx,0x4
/usr/include/c++/12/bits/stl_algobase.h:259
    1208: vmaxss xmm1,xmm0,xmm1
/candidate/kernel.cpp:18
    120c: cmp    rbx,r14
    120f: jne    1200 <softmax(float const*)+0xf0>
/candidate/kernel.cpp:23 (discriminator 3)
    1250: vmovss xmm0,DWORD PTR [r14+r15*1]
    1256: vsubss xmm0,xmm0,DWORD PTR [rbp-0x3c]
    125b: call   1030 <expf@plt>
/candidate/kernel.cpp:24
    1266: vcvtss2sd xmm0,xmm0,xmm0
    126a: vaddsd xmm7,xmm0,QWORD PTR [rbp-0x38]
    127b: jne    1250 <softmax(float const*)+0x140>
    1280: jmp    1200 <softmax(float const*)+0xf0>
)",
                                            kSource);
  ASSERT_TRUE(code.loop);
  EXPECT_EQ(code.loop->first_line, 23);
  EXPECT_EQ(code.loop->last_line, 24);
  EXPECT_EQ(code.loop->instructions, 6);
  EXPECT_EQ(code.loop->on_scalars, 2);
  EXPECT_EQ(code.loop->on_vectors, 0);
  EXPECT_EQ(code.loop->vector_bits, 0);
  EXPECT_EQ(code.loop->spills, 2);
  EXPECT_THAT(code.loop->calls, ElementsAre("expf"));
  EXPECT_FALSE(code.starts_threads);
}

TEST(NativeLoop, PrefersVectorsToTheirRemainder) {
  const NativeCode code = ReadNativeListing(R"(
0000000000001000 <work() [clone ._omp_fn.0]>:
/candidate/kernel.cpp:7
    1000: vmovups zmm0,ZMMWORD PTR [rax]
    1004: vfmadd213ps zmm0,zmm1,zmm2
    1008: vdivps zmm0,zmm0,zmm3
    100c: vgatherdps zmm4{k1},DWORD PTR [rcx+zmm5*4]
    1010: vmovups ZMMWORD PTR [rsp+0x40],zmm0
    1014: jb     1000 <work()>
    1018: vfmadd213ss xmm0,xmm1,xmm2
    101c: vdivss xmm0,xmm0,xmm3
    101d: vdivss xmm0,xmm0,xmm3
    101e: vdivss xmm0,xmm0,xmm3
    101f: vdivss xmm0,xmm0,xmm3
    1020: jb     1018 <work()+0x18>
0000000000001100 <entry()>:
    1100: call   1040 <GOMP_parallel@plt>
)",
                                            kSource);
  ASSERT_TRUE(code.loop);
  EXPECT_EQ(code.loop->on_vectors, 2);
  EXPECT_EQ(code.loop->vector_bits, 512);
  EXPECT_EQ(code.loop->divisions, 1);
  EXPECT_EQ(code.loop->gathers, 1);
  EXPECT_EQ(code.loop->spills, 1);
  EXPECT_THAT(code.loop->calls, IsEmpty());
  EXPECT_TRUE(code.starts_threads);
}

// The slow path of a push_back stands behind the function and jumps back: it was the 'hot loop',
// and the code was said to have no vectors.
TEST(NativeLoop, ABlockThatRarelyRunsIsNoLoopAndItsCallsAreNoWork) {
  const NativeCode code = ReadNativeListing(R"(
0000000000001000 <work()>:
/candidate/kernel.cpp:7
    1000: vmovups ymm0,YMMWORD PTR [rax]
    1004: vpmaddwd ymm0,ymm1,ymm2
    1008: vpaddd ymm3,ymm3,ymm0
    100c: cmp    rax,rdx
    1010: jne    1000 <work()>
/candidate/kernel.cpp:9
    1014: cmp    rcx,rsi
    1018: je     1040 <work()+0x40>
    101c: mov    DWORD PTR [rcx],eax
    1020: ret
/candidate/kernel.cpp:11
    1024: call   1200 <operator new(unsigned long)@plt>
    1028: call   1210 <memcpy@plt>
    102c: call   1220 <__tls_get_addr@plt>
    1030: cmp    rax,rbx
    1034: jne    1024 <work()+0x24>
    1038: call   1240 <std::__throw_length_error(char const*)@plt>
/candidate/kernel.cpp:9
    1040: call   1230 <grow()>
    1044: vdivss xmm0,xmm0,xmm3
    1048: jmp    101c <work()+0x1c>
)",
                                            kSource);
  ASSERT_TRUE(code.loop);
  EXPECT_EQ(code.loop->first_line, 7);
  EXPECT_EQ(code.loop->instructions, 5);
  EXPECT_EQ(code.loop->on_vectors, 2);
  EXPECT_EQ(code.loop->vector_bits, 256);
  EXPECT_THAT(code.loop->calls, IsEmpty());
}

TEST(NativeLoop, LoopsOfOtherFilesAndOfIntegersAreNone) {
  EXPECT_FALSE(ReadNativeListing(R"(
0000000000001000 <start>:
/usr/include/x.h:7
    1000: vaddps zmm0,zmm0,zmm1
    1004: jb     1000 <start>
0000000000002000 <count>:
/candidate/kernel.cpp:9
    2000: add    rax,0x1
    2004: jb     2000 <count>
)",
                                 kSource)
                   .loop);
  EXPECT_FALSE(ReadNativeListing("", kSource).loop);
  EXPECT_FALSE(
      ReadNativeListing("kernel.so: file format not recognized\n   : \n  12: ", kSource).loop);
}

}  // namespace
}  // namespace assay
