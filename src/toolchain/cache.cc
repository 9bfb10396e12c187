// Entry: FOLDER/<first 2 of the key>/<key>, holding a line "assay-artifact/1 SHA-256\n", then the
// artifact. The hash makes a damaged entry absent; it is no defence against a writer of the folder,
// who can only be the user.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/files.h"
#include "base/hash.h"
#include "toolchain/build.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "assay-artifact/1 ";
constexpr size_t kHashBytes = 64;
constexpr size_t kHeaderBytes = kMark.size() + kHashBytes + 1;

fs::path EntryPath(const std::string& folder, const std::string& key) {
  ASSAY_CHECK(key.size() == kHashBytes);
  ASSAY_CHECK(key.find_first_not_of("0123456789abcdef") == std::string::npos);
  return fs::path(folder) / key.substr(0, 2) / key;
}

struct Entry {
  fs::path path;
  uint64_t size_bytes = 0;
  fs::file_time_type used;
};

// Every file under the folder, files that a killed process left half written among them.
std::vector<Entry> ListEntries(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code code;
  for (fs::recursive_directory_iterator file(folder, code), end; !code && file != end;
       file.increment(code)) {
    std::error_code ignored;
    if (!file->is_regular_file(ignored)) continue;
    Entry entry{file->path(), file->file_size(ignored), file->last_write_time(ignored)};
    if (!ignored) entries.push_back(std::move(entry));
  }
  return entries;
}

void EvictOldest(const std::string& folder, uint64_t size_bytes_max, const fs::path& keep) {
  std::vector<Entry> entries = ListEntries(folder);
  uint64_t total_bytes = 0;
  for (const Entry& entry : entries) total_bytes += entry.size_bytes;
  if (total_bytes <= size_bytes_max) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total_bytes <= size_bytes_max) return;
    if (entry.path == keep) continue;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total_bytes -= entry.size_bytes;
  }
}

}  // namespace

ArtifactCache::ArtifactCache(std::string folder, uint64_t size_bytes_max)
    : folder_(std::move(folder)), size_bytes_max_(size_bytes_max) {}

std::string ArtifactCache::Key(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) joined += fmt::format("{}:{}", part.size(), part);
  return Sha256Hex(joined);
}

std::optional<std::string> ArtifactCache::Get(const std::string& key) const {
  const fs::path path = EntryPath(folder_, key);
  auto content = ReadFile(path, size_bytes_max_);
  if (!content || content->size() < kHeaderBytes || !content->starts_with(kMark) ||
      (*content)[kHeaderBytes - 1] != '\n')
    return std::nullopt;
  const std::string_view artifact = std::string_view(*content).substr(kHeaderBytes);
  if (content->compare(kMark.size(), kHashBytes, Sha256Hex(artifact)) != 0) return std::nullopt;
  // Eviction goes by the time of the last use.
  const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  ::utimensat(AT_FDCWD, path.c_str(), now, 0);
  return std::string(artifact);
}

Result<void> ArtifactCache::Put(const std::string& key, std::string_view artifact) {
  const fs::path path = EntryPath(folder_, key);
  if (artifact.size() + kHeaderBytes > size_bytes_max_) return {};
  std::string content = fmt::format("{}{}\n", kMark, Sha256Hex(artifact));
  content += artifact;
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, content, Durability::kFleeting));
  EvictOldest(folder_, size_bytes_max_, path);
  return {};
}

std::string ProcessorIdentity() {
  const auto text = ReadFile("/proc/cpuinfo", size_t{64} << 20);
  if (!text) return "unknown processor";
  // The first processor's paragraph; lines that change while the machine runs (MHz, bogomips) stay
  // out.
  const std::string_view first = std::string_view(*text).substr(0, text->find("\n\n"));
  std::string model, features;
  for (size_t at = 0; at < first.size();) {
    const size_t end = std::min(first.find('\n', at), first.size());
    const std::string_view line = first.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("model name"))
      model = line.substr(std::min(line.find(": "), line.size() - 2) + 2);
    for (std::string_view field :
         {"cpu family", "model\t", "stepping", "flags", "Features", "CPU "}) {
      if (line.starts_with(field)) features += std::string(line) + '\n';
    }
  }
  if (model.empty()) model = "processor";
  return fmt::format("{} {}", model, Sha256Hex(features).substr(0, 16));
}

}  // namespace assay
