#include "queue/spool_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = "assay-queue.json";
constexpr const char* kSchema = "assay.queue/1";
constexpr size_t kMarkerBytesMax = 4096;

std::unexpected<Error> Failed(const char* what, const fs::path& path) {
  const int error = errno;
  return EnvironmentError(fmt::format("the queue's folder: cannot {} {}: {}", what, path.string(),
                                      std::strerror(error)));
}

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "host";
  return name.data();
}

Result<void> CheckMarker(const fs::path& place) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(place / kMarker, kMarkerBytesMax));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const std::string schema = json.is_object() ? json.value("schema", "") : "";
  if (schema == kSchema) return {};
  return UsageError(fmt::format(
      "{}: this queue has the form '{}', and this Assay reads {}: use one version on all machines",
      place.string(), schema, kSchema));
}

}  // namespace

Result<SpoolFiles> SpoolFiles::Open(const fs::path& given) {
  std::error_code code;
  const fs::path place = fs::absolute(given, code);
  const SpoolFiles files(place);
  if (!Has(place / kMarker)) {
    fs::create_directories(place, code);
    if (code)
      return EnvironmentError(
          fmt::format("cannot make the queue's folder {}: {}", place.string(), code.message()));
    for (const std::string& name : Names(place))
      if (name != "tmp" && name != kMarker)
        return UsageError(fmt::format(
            "{} holds {} and is no queue: give a folder that is empty, or is to be made",
            place.string(), name));
    ASSAY_RETURN_IF_ERROR(files.Make(
        place / kMarker, fmt::format("{{\"schema\":\"{}\"}}\n", kSchema), Durability::kLasting));
  }
  ASSAY_RETURN_IF_ERROR(CheckMarker(place));
  for (const char* kind : {"tmp", "todo", "claims", "works", "ends", "workers", "drained", "added"})
    if (fs::create_directories(place / kind, code); code)
      return EnvironmentError(fmt::format("the queue's folder: cannot make {}: {}",
                                          (place / kind).string(), code.message()));
  return files;
}

fs::path SpoolFiles::Temporary() const {
  static std::atomic<uint64_t> count{0};
  return place_ / "tmp" /
         fmt::format("{}-{}-{}-{}", HostName(), ::getpid(), MonotonicNs(), ++count);
}

Result<bool> SpoolFiles::Make(const fs::path& path, std::string_view content,
                              Durability durability) const {
  const fs::path temporary = Temporary();
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(temporary, content, durability));
  bool made = false;
  for (int attempt = 0; attempt < 2; ++attempt) {
    made = ::link(temporary.c_str(), path.c_str()) == 0;
    if (made || errno != ENOENT || attempt > 0) break;
    std::error_code code;
    fs::create_directories(path.parent_path(), code);
  }
  const int error = errno;
  struct stat status;
  // NFS may make the link and lose the answer.
  if (!made) made = ::stat(temporary.c_str(), &status) == 0 && status.st_nlink == 2;
  ::unlink(temporary.c_str());
  if (made || error == EEXIST) return made;
  errno = error;
  return Failed("make", path);
}

Result<bool> SpoolFiles::Move(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (errno == ENOENT) return Has(to);
  return Failed("rename", from);
}

bool SpoolFiles::Has(const fs::path& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

void SpoolFiles::Remove(const fs::path& path) { ::unlink(path.c_str()); }

std::vector<std::string> SpoolFiles::Names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator each(folder, code), end; !code && each != end; each.increment(code))
    names.push_back(each->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

double SpoolFiles::AgeOf(const fs::path& path) const {
  const fs::path probe = Temporary();
  struct stat file, now;
  if (!WriteFileAtomically(probe, "", Durability::kFleeting)) return -1;
  const bool known = ::stat(path.c_str(), &file) == 0 && ::stat(probe.c_str(), &now) == 0;
  Remove(probe);
  if (!known) return -1;
  const auto seconds = [](const struct stat& of) {
    return static_cast<double>(of.st_mtim.tv_sec) + static_cast<double>(of.st_mtim.tv_nsec) / 1e9;
  };
  return std::max(0.0, seconds(now) - seconds(file));
}

}  // namespace assay
