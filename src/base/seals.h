// The seals of shared memory that the judge hands to hosts. The sandbox's self-test tries to break
// exactly these.
#pragma once

#include <fcntl.h>

namespace assay {

// The size is fixed, and so is the set of seals.
inline constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Besides, nobody can write to it, except through mappings that are writable already.
inline constexpr int kReadOnlySeals = F_SEAL_FUTURE_WRITE | kSizeSeals;

}  // namespace assay
