// Memory traffic that this machine reaches.
#pragma once

#include <cstdint>
#include <span>

namespace assay {

struct Bandwidths {
  double read_bytes_s = 0;
  double copy_bytes_s = 0;   // read and written bytes together
  double triad_bytes_s = 0;  // a = b + s c: two read, one written
};

// Each core works on its own three arrays of `array_bytes`, which no cache should hold. After
// J. D. McCalpin's STREAM. Several streams at once, lines asked for ahead and stores that bypass
// the caches are tried beside plain loops, and the best counts: a ceiling is what can be reached.
Bandwidths MeasureBandwidth(std::span<const int> cpus, uint64_t array_bytes, int repeats);

}  // namespace assay
