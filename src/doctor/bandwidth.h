// Measures the memory bandwidth of this machine.
#pragma once

#include <cstdint>
#include <span>

namespace assay {

struct Bandwidths {
  double read_bytes_s = 0;
  double copy_bytes_s = 0;   // read and written bytes together
  double triad_bytes_s = 0;  // a = b + s c: two read, one written
};

// Measures after J. D. McCalpin's STREAM. Each core works on its own three arrays of `array_bytes`,
// which no cache should hold. Tries several streams at once, prefetched lines and stores that
// bypass the caches beside plain loops; the best counts, as the result is a ceiling.
Bandwidths MeasureBandwidth(std::span<const int> cpus, uint64_t array_bytes, int repeats);

}  // namespace assay
