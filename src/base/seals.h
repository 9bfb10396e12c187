// The seals of shared memory that the judge hands to hosts. The sandbox's self-test tries to break
// exactly these.
#pragma once

#include <fcntl.h>

namespace assay {

// Nobody makes it larger or smaller, or takes the seals back.
inline constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Besides, only mappings that are already writable stay so.
inline constexpr int kReadOnlySeals = F_SEAL_FUTURE_WRITE | kSizeSeals;

}  // namespace assay
