#include "http/token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/files.h"
#include "base/hash.h"
#include "base/secret.h"
#include "base/unique_fd.h"

namespace assay {
namespace {

constexpr size_t kTokenDigits = 32;
constexpr size_t kFileBytesMax = 1024;

std::string FirstWord(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_first_of(kSpace, begin) - begin);
}

}  // namespace

Result<std::string> ReadOrMakeToken(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if ((facts.st_mode & 077) != 0)
      return UsageError(
          fmt::format("others may read {}: chmod 600 it, and choose a new token", path));
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
    std::string token = FirstWord(text);
    if (token.size() < kTokenDigits)
      return UsageError(
          fmt::format("{} has no token of at least {} characters: remove it, and it is made anew",
                      path, kTokenDigits));
    return token;
  }
  ASSAY_ASSIGN_OR_RETURN(std::string token, RandomHex(kTokenDigits / 2));
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string line = token + "\n";
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return UsageError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return token;
}

TokenGuard::TokenGuard(const std::string& token, int port)
    : token_hash_(Sha256Hex(token)), port_(port) {}

std::optional<TokenGuard::Refusal> TokenGuard::Refuse(const ServedRequest& request) const {
  const std::string host = request.Header("host");
  if (host != fmt::format("127.0.0.1:{}", port_) && host != fmt::format("localhost:{}", port_))
    return Refusal{403, "this address serves the loopback interface alone"};
  constexpr std::string_view kScheme = "Bearer ";
  const std::string given = request.Header("authorization");
  if (!given.starts_with(kScheme) ||
      !IsSameSecret(Sha256Hex(given.substr(kScheme.size())), token_hash_))
    return Refusal{401, "send the token of --token-file as Authorization: Bearer"};
  return std::nullopt;
}

}  // namespace assay
