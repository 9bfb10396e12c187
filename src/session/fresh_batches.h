// Gives each batch of frozen sources a fresh batch of values. One may be made before its sources
// arrive, while nothing is measured; it waits in memory that no host under test maps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"

namespace assay {

// `Values`: the values of a batch (session/batch.h); tests use their own type.
template <typename Values>
class FreshBatches {
 public:
  using Make = std::function<Result<std::unique_ptr<Values>>(uint64_t seed)>;
  // `first_seed` is the session's seed, which its verdicts name; only the first batch uses it.
  // Later ones use `fresh_seed`, the operating system's randomness.
  FreshBatches(uint64_t first_seed, std::function<uint64_t()> fresh_seed, Make make)
      : next_seed_(first_seed), fresh_seed_(std::move(fresh_seed)), make_(std::move(make)) {}

  // Makes the next batch now, unless one waits.
  Result<void> Prepare() {
    if (waiting_) return {};
    const uint64_t seed = std::exchange(next_seed_, fresh_seed_());
    ASSAY_ASSIGN_OR_RETURN(waiting_, make_(seed));
    return {};
  }
  // Returns the next batch, each only once. Makes it if none waits.
  Result<std::unique_ptr<Values>> Take() {
    ASSAY_RETURN_IF_ERROR(Prepare());
    return std::move(waiting_);
  }

  // Returns true if a batch was made and waits.
  bool waiting() const { return waiting_ != nullptr; }
  uint64_t next_seed() const { return next_seed_; }

 private:
  uint64_t next_seed_;
  std::function<uint64_t()> fresh_seed_;
  Make make_;
  std::unique_ptr<Values> waiting_;
};

}  // namespace assay
