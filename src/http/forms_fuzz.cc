// Forms, cookies and targets as peers send them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/forms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const std::string_view first = text.substr(0, line);
  const std::string_view rest = line == std::string_view::npos ? "" : text.substr(line + 1);
  if (const auto split = assay::ReadTarget(first))
    (void)assay::MatchPath("/jobs/{id}/events", split->path);
  (void)assay::ReadForm(text);
  (void)assay::ReadCookies(text);
  (void)assay::ReadMultipart(first, rest);
  return 0;
}
