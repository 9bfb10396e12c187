#include "serve/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/unique_fd.h"

namespace assay {

namespace fs = std::filesystem;

PrivateFiles::PrivateFiles(const std::string& sqlite_path) : before_(::umask(0077)) {
  std::error_code code;
  for (const char* part : {"", "-wal", "-shm"})
    fs::permissions(sqlite_path + part, fs::perms::owner_read | fs::perms::owner_write, code);
}

PrivateFiles::~PrivateFiles() { ::umask(before_); }

Result<void> WritePrivateFile(const std::string& path, const std::string& content) {
  const std::string fresh = path + ".new";
  const auto fail = [&] {
    return EnvironmentError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  };
  ::unlink(fresh.c_str());
  const UniqueFd file(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail();
  const ssize_t written = ::write(file.get(), content.data(), content.size());
  if (written < 0 || !std::cmp_equal(written, content.size()) || ::fsync(file.get()) != 0 ||
      ::rename(fresh.c_str(), path.c_str()) != 0)
    return fail();
  return {};
}

}  // namespace assay
