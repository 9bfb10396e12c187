// SHA-256 for evidence (sources, problems, artifacts); XXH3 for caches and change detection only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

// Returns the SHA-256 of the bytes as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

// A fast hash that a candidate could forge on purpose: never evidence.
uint64_t FastHash(const void* bytes, size_t size_bytes);

}  // namespace assay
