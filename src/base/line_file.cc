#include "base/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace assay {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 30;

}  // namespace

Result<void> ForEachLine(std::string_view text, const std::string& path, const IsWholeLine& whole,
                         const std::function<Result<void>(std::string_view)>& take) {
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    ++number;
    const size_t end = text.find('\n', at);
    const bool ended = end != std::string_view::npos;
    const std::string_view line = text.substr(at, ended ? end - at : end);
    if (!ended && !whole(line)) return {};
    if (const auto taken = take(line); !taken)
      return Fail(taken.error().kind, fmt::format("{} line {}: {}: mend or remove the line", path,
                                                  number, taken.error().message));
    at = ended ? end + 1 : text.size();
  }
  return {};
}

std::unexpected<Error> LineFile::Failed(std::string_view what) const {
  return EnvironmentError(fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)));
}

Result<LineFile> LineFile::Open(const std::string& path, std::string_view user,
                                const IsWholeLine& whole) {
  std::error_code code;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, code);
  LineFile file(path,
                UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)));
  if (file.fd_.get() < 0) return file.Failed("open");
  if (::flock(file.fd_.get(), LOCK_EX | LOCK_NB) != 0)
    return EnvironmentError(
        fmt::format("{} is in use: another {} adds to it; wait for its end, or choose another file",
                    path, user));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, file.Read());
  const size_t end = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (end == text.size()) return file;
  if (whole(std::string_view(text).substr(end))) {
    ASSAY_RETURN_IF_ERROR(file.Write("\n"));
    return file;
  }
  file.was_torn_ = true;
  if (::ftruncate(file.fd_.get(), static_cast<off_t>(end)) != 0)
    return file.Failed("cut the torn line off");
  return file;
}

Result<std::string> LineFile::Read() const { return ReadFile(path_, kFileBytesMax); }

Result<void> LineFile::Append(std::string_view lines) {
  const off_t before = ::lseek(fd_.get(), 0, SEEK_END);
  if (auto written = Write(std::string(lines) + "\n"); !written) {
    // The part of the line that fits, as on a full disk, must not stay.
    if (before >= 0 && ::ftruncate(fd_.get(), before) != 0) return Failed("take a torn line from");
    return written;
  }
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) return Failed("flush");
  return {};
}

Result<void> LineFile::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd_.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Failed("write to");
    text.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

}  // namespace assay
