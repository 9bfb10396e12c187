#include "http/gzip.h"

#define ZLIB_CONST  // what zlib reads it does not write to
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace assay {
namespace {

// The lowest level takes a third of the usual level's time, and a page of ranks gets a seventh
// larger by it.
constexpr int kLevel = 1;
constexpr int kWindowOfGzip = 15 + 16, kMemoryLevel = 9;
// Less than a packet is not sent sooner.
constexpr size_t kBytesMin = 1400;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool IsSame(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char one, char other) {
    return std::tolower(static_cast<unsigned char>(one)) == other;
  });
}

// "q=0", "q=0.00": the coding is refused.
bool IsRefusal(std::string_view parameter) {
  return parameter.size() >= 3 && IsSame(parameter.substr(0, 2), "q=") &&
         parameter.find_first_not_of("0.", 2) == std::string_view::npos;
}

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  bool by_any = false;
  while (!accept_encoding.empty()) {
    const size_t comma = accept_encoding.find(',');
    const std::string_view item = Trimmed(accept_encoding.substr(0, comma));
    accept_encoding.remove_prefix(comma == std::string_view::npos ? accept_encoding.size()
                                                                  : comma + 1);
    const size_t semicolon = item.find(';');
    const std::string_view coding = Trimmed(item.substr(0, semicolon));
    const bool refused =
        semicolon != std::string_view::npos && IsRefusal(Trimmed(item.substr(semicolon + 1)));
    if (IsSame(coding, "gzip")) return !refused;  // its own word counts before that for any
    if (coding == "*") by_any = !refused;
  }
  return by_any;
}

bool IsWorthGzip(std::string_view content_type, size_t bytes) {
  constexpr std::array<std::string_view, 3> kKinds{"text/", "application/json", "image/svg+xml"};
  return bytes >= kBytesMin && std::ranges::any_of(kKinds, [&](std::string_view kind) {
           return content_type.starts_with(kind);
         });
}

std::optional<std::string> Gzipped(std::string_view text) {
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kWindowOfGzip, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  std::string packed(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool whole = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (!whole) return std::nullopt;
  return packed;
}

}  // namespace assay
