// Keys of paid services: read from the environment or a file, sent to one place, shown nowhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// Holds one key in memory of its own, which core dumps leave out, and wipes it on destruction.
// A process that has held a key makes no core dumps: copies of it pass through libcurl's memory,
// and it may stand in the environment.
class ApiKey {
 public:
  ApiKey() = default;  // none
  // Copies the text, then wipes it. Errors: kUsage (bytes that no key has; `place` names where it
  // came from), kEnvironment (no memory).
  static Result<ApiKey> Take(std::string& text, std::string_view place);
  ApiKey(ApiKey&& other) noexcept;
  ApiKey& operator=(ApiKey&& other) noexcept;
  ~ApiKey();

  bool empty() const { return size_ == 0; }
  std::string_view text() const { return {page_, size_}; }
  // Returns the text with "[key]" in place of the key.
  std::string Scrubbed(std::string text) const;
  // Returns true if the text contains the key.
  bool IsIn(std::string_view text) const;

 private:
  char* page_ = nullptr;
  size_t size_ = 0, page_bytes_ = 0;
};

// Reads a key file: its first line. Errors: kUsage.
Result<ApiKey> ReadKeyFile(const std::string& path);
// Reads the variable; an empty key if it is not set or empty. Errors: as ApiKey::Take().
Result<ApiKey> KeyFromEnvironment(const char* variable);

// Overwrites the text in a way that the compiler keeps.
void Wipe(std::string& text);

}  // namespace assay
