#include "base/secret.h"

#include <fmt/format.h>
#include <sys/random.h>

namespace assay {

Result<std::string> RandomHex(size_t bytes) {
  std::string raw(bytes, '\0'), text;
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size()))
    return EnvironmentError("the operating system gives no random bytes");
  for (const char byte : raw) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

bool IsSameSecret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  return difference == 0;
}

}  // namespace assay
