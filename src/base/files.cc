#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay {
namespace fs = std::filesystem;

Result<std::string> ReadFile(const fs::path& path, size_t size_bytes_max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return UsageError(fmt::format("cannot read {}: {}", path.string(), strerror(errno)));
  struct stat status;
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return UsageError(fmt::format("cannot read {}: not a regular file", path.string()));
  std::string content;
  char buffer[64 * 1024];
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return UsageError(fmt::format("cannot read {}: {}", path.string(), strerror(errno)));
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
    if (content.size() > size_bytes_max)
      return UsageError(
          fmt::format("{} is larger than the limit of {} bytes", path.string(), size_bytes_max));
  }
}

namespace {

Result<void> WriteAll(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return EnvironmentError(fmt::format("cannot write {}: {}", path.string(), strerror(errno)));
    content.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> Flush(int fd, const fs::path& path) {
  if (::fsync(fd) == 0) return {};
  return EnvironmentError(fmt::format("cannot flush {}: {}", path.string(), strerror(errno)));
}

void SyncFolder(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

fs::path HomeFolder(const char* variable, const char* fallback) {
  if (const char* value = ::getenv(variable); value != nullptr && value[0] == '/')
    return fs::path(value) / "assay";
  const char* home = ::getenv("HOME");
  return fs::path(home != nullptr ? home : "/tmp") / fallback / "assay";
}

}  // namespace

Result<void> WriteFileAtomically(const fs::path& path, std::string_view content,
                                 Durability durability) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code code;
  fs::create_directories(folder, code);
  if (code)
    return EnvironmentError(fmt::format("cannot create {}: {}", folder.string(), code.message()));
  std::string temporary = (folder / ".assay-XXXXXX").string();
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd)
    return EnvironmentError(
        fmt::format("cannot write in {}: {}", folder.string(), strerror(errno)));
  ::fchmod(fd.get(), 0644);
  auto written = WriteAll(fd.get(), content, path);
  if (written && durability == Durability::kLasting) written = Flush(fd.get(), path);
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return EnvironmentError(fmt::format("cannot write {}: {}", path.string(), strerror(error)));
  }
  if (durability == Durability::kLasting) SyncFolder(folder);
  return {};
}

UniqueFd MemoryFile(const std::string& content) {
  UniqueFd fd(::memfd_create("assay-file", MFD_CLOEXEC));
  if (fd && !content.empty()) {
    const ssize_t count = ::pwrite(fd.get(), content.data(), content.size(), 0);
    if (count != static_cast<ssize_t>(content.size())) return UniqueFd();
  }
  return fd;
}

Result<TemporaryFolder> TemporaryFolder::Create() {
  const char* base = ::getenv("TMPDIR");
  std::string path =
      std::string(base != nullptr && base[0] == '/' ? base : "/tmp") + "/assay-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return EnvironmentError(
        fmt::format("cannot create a temporary folder {}: {}", path, strerror(errno)));
  return TemporaryFolder(path);
}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

fs::path CacheFolder() { return HomeFolder("XDG_CACHE_HOME", ".cache"); }
fs::path StateFolder() { return HomeFolder("XDG_STATE_HOME", ".local/state"); }
fs::path DataFolder() { return HomeFolder("XDG_DATA_HOME", ".local/share"); }

}  // namespace assay
