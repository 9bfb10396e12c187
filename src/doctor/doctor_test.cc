#include <gtest/gtest.h>

#include <vector>

#include "doctor/arithmetic.h"
#include "doctor/bandwidth.h"
#include "doctor/noise.h"
#include "doctor/team.h"
#include "doctor/topology.h"
#include "machine/machine.h"

namespace assay {
namespace {

const std::vector<int>& Cores() { return UsableCpus(); }

TEST(Team, EveryMemberWorksOnAllItsPiecesEveryTime) {
  std::vector<int> first(Cores().size(), 0), second(Cores().size(), 0);
  const auto seconds = ShortestSeconds(Cores(), 3, [&](size_t index) -> Pieces {
    return {[&first, index] { ++first[index]; }, [&second, index] { ++second[index]; }};
  });
  EXPECT_EQ(first, std::vector<int>(Cores().size(), 3));
  EXPECT_EQ(second, first);
  ASSERT_EQ(seconds.size(), 2U);
  for (const double each : seconds) {
    EXPECT_GE(each, 0);
    EXPECT_LT(each, 10);
  }
}

// Orders of magnitude alone: the machine may be busy, and sanitizers slow it down.
TEST(Bandwidth, IsThatOfAMemory) {
  const Bandwidths found = MeasureBandwidth(std::vector<int>{Cores().back()}, 8 << 20, 2);
  for (const double rate : {found.read_bytes_s, found.copy_bytes_s, found.triad_bytes_s}) {
    EXPECT_GT(rate, 1e7);
    EXPECT_LT(rate, 1e13);
  }
}

TEST(Arithmetic, WiderInstructionsDoMore) {
  const ArithmeticRates rates = MeasureArithmetic(std::vector<int>{Cores().back()}, 2);
  ASSERT_FALSE(rates.float32_operations_s.empty());
  for (const auto& [name, rate] : rates.float32_operations_s) {
    EXPECT_GT(rate, 1e8) << name;
    EXPECT_LT(rate, 1e12) << name;  // of one core
    EXPECT_GT(rate, rates.float64_operations_s.at(name)) << name;
  }
}

TEST(Topology, HasACoreAndSaneCaches) {
  const Topology topology = ReadTopology();
  EXPECT_GE(topology.cores, 1);
  EXPECT_GE(topology.threads, topology.cores);
  uint64_t inner = 0;
  for (const CacheLevel& cache : topology.caches) {
    EXPECT_GT(cache.size_bytes, inner);
    inner = cache.size_bytes;
  }
}

TEST(VerdictNoise, IsNearTheSpreadOfMediansAndTheSameEachTime) {
  std::vector<double> pairs;
  for (int i = -10; i <= 10; ++i) pairs.push_back(0.001 * i);
  const double noise = VerdictNoise(pairs);
  EXPECT_GT(noise, 0.003);
  EXPECT_LT(noise, 0.009);  // below the widest pair: one wild pair does not move a median
  EXPECT_EQ(VerdictNoise(pairs), noise);
  EXPECT_DOUBLE_EQ(VerdictNoise(std::vector<double>(5, -0.02)), 0.02);
}

}  // namespace
}  // namespace assay
