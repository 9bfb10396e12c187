#include "http/api_key.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/trimmed.h"

namespace assay {
namespace {

constexpr size_t kKeyBytesMax = 4096;
// Shorter ones are placeholders, such as "none": to look for them would spoil ordinary text.
constexpr size_t kScrubbedBytesMin = 8;

// 1 stops files and programs that receive dumps alike (core(5)); 0 stops files alone.
void MakeNoCoreDumps() {
  rlimit limit;
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max < 1 ? 0 : 1;
  ::setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace

void Wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

Result<ApiKey> ApiKey::Take(std::string& text, std::string_view place) {
  for (const char c : text)
    if (c <= ' ' || c > '~' || text.size() > kKeyBytesMax) {
      Wipe(text);
      return UsageError(
          fmt::format("{} holds no key: a key is one word of at most {} printable characters",
                      place, kKeyBytesMax));
    }
  ApiKey key;
  if (text.empty()) return key;
  MakeNoCoreDumps();
  key.page_bytes_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* page =
      ::mmap(nullptr, key.page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    Wipe(text);
    return EnvironmentError(fmt::format("no memory for a key: {}", ::strerror(errno)));
  }
  ::madvise(page, key.page_bytes_, MADV_DONTDUMP);
  ::mlock(page, key.page_bytes_);  // not into swap, where the limits allow
  key.page_ = static_cast<char*>(page);
  key.size_ = text.size();
  ::memcpy(key.page_, text.data(), text.size());
  Wipe(text);
  return key;
}

ApiKey::ApiKey(ApiKey&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      page_bytes_(std::exchange(other.page_bytes_, 0)) {}

ApiKey& ApiKey::operator=(ApiKey&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(size_, other.size_);
  std::swap(page_bytes_, other.page_bytes_);
  return *this;
}

ApiKey::~ApiKey() {
  if (page_ == nullptr) return;
  ::explicit_bzero(page_, page_bytes_);
  ::munmap(page_, page_bytes_);
}

bool ApiKey::IsIn(std::string_view content) const {
  return size_ >= kScrubbedBytesMin && content.find(text()) != std::string_view::npos;
}

std::string ApiKey::Scrubbed(std::string content) const {
  if (!IsIn(content)) return content;
  std::string clean;
  size_t at = 0;
  for (size_t next; (next = content.find(text(), at)) != std::string::npos; at = next + size_)
    clean.append(content, at, next - at).append("[key]");
  clean.append(content, at);
  Wipe(content);
  return clean;
}

Result<ApiKey> ReadKeyFile(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kKeyBytesMax));
  std::string line(Trimmed(std::string_view(content).substr(0, content.find('\n'))));
  Wipe(content);
  if (line.empty())
    return UsageError(fmt::format("{} holds no key: write it on the first line", path));
  return ApiKey::Take(line, path);
}

Result<ApiKey> KeyFromEnvironment(const char* variable) {
  const char* value = ::getenv(variable);
  if (value == nullptr) return ApiKey();
  std::string text(Trimmed(value));
  return ApiKey::Take(text, fmt::format("${}", variable));
}

}  // namespace assay
