#include "machine/seeds.h"

#include <fmt/format.h>

#include <random>
#include <string>

#include "base/hash.h"

namespace assay {

uint64_t DeriveSeed(uint64_t seed, SeedStream stream) {
  const std::string hash =
      Sha256Hex(fmt::format("assay seed {} stream {}", seed, static_cast<uint64_t>(stream)));
  return std::stoull(hash.substr(0, 16), nullptr, 16) >> 1;
}

uint64_t FreshSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) >> 1;
}

}  // namespace assay
