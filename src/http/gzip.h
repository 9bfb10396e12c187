// Bodies that are sent compressed to a peer that asks for it (RFC 9110, 12.5.3). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

// The value of Accept-Encoding names gzip, or anything, and does not refuse it by q=0.
bool AcceptsGzip(std::string_view accept_encoding);

// Text compresses well: HTML, JSON, SVG. Other bodies mostly are compressed already.
bool IsWorthGzip(std::string_view content_type, size_t bytes);

// The text as one member of gzip. nullopt: there is no memory for it.
std::optional<std::string> Gzipped(std::string_view text);

}  // namespace assay
