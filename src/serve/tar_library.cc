#include "serve/tar_library.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

namespace assay {
namespace {

constexpr size_t kShownMax = 80;
constexpr size_t kHeadBytesMax = 4096;  // of an entry, on the mean

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;
using Writer = std::unique_ptr<archive, decltype(&archive_write_free)>;
using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

bool IsPlain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
}

// A name from a tar, for a message.
std::string Shown(std::string_view path) {
  std::string shown;
  for (const char letter : path.substr(0, kShownMax))
    shown += IsPlain(letter) || letter == '/' || letter == ' ' ? letter : '?';
  return path.size() > kShownMax ? shown + "..." : shown;
}

// Whether the tars that are written here can hold the path: in ustar's form a name has 100 bytes,
// and the folders before it 155.
bool IsWritable(std::string_view path) {
  constexpr size_t kNameMax = 100, kFoldersMax = 155;
  if (path.size() <= kNameMax) return true;
  for (size_t at = 0; (at = path.find('/', at)) != std::string_view::npos; ++at)
    if (at <= kFoldersMax && path.size() - at - 1 <= kNameMax) return true;
  return false;
}

// Returns the path without "./" at its beginning and "/" at its end; of the folder itself "".
Result<std::string> SafePath(std::string_view path, const TarLimits& limits) {
  const std::string shown = Shown(path);
  const auto refuse = [&](std::string_view why) {
    return UsageError(fmt::format("the entry \"{}\" of the tar {}", shown, why));
  };
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty() || path == ".") return std::string();
  if (path.size() > limits.path_bytes_max || !IsWritable(path))
    return refuse("has too long a path");
  int folders = 0;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..")
      return refuse("leads out of its folder: pack the folder from inside");
    if (!std::all_of(part.begin(), part.end(), IsPlain))
      return refuse("has a name of other characters than letters, digits, '.', '-' and '_'");
    if (++folders > limits.folders_max) return refuse("lies too deep in folders");
    at = end + 1;
  }
  return std::string(path);
}

Result<void> CheckKind(archive_entry* entry, const std::string& shown) {
  const auto refuse = [&](std::string_view why) {
    return UsageError(fmt::format("the entry \"{}\" of the tar is {}", shown, why));
  };
  if (archive_entry_hardlink(entry) != nullptr || archive_entry_filetype(entry) == AE_IFLNK)
    return refuse("a link: pack the file itself");
  if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != AE_IFDIR)
    return refuse("no plain file");
  if (archive_entry_sparse_count(entry) > 0) return refuse("sparse: pack it without holes");
  return {};
}

std::unexpected<Error> Unreadable(archive* reader) {
  const char* why = archive_error_string(reader);
  std::string text = why != nullptr ? why : "it ends early";
  // It may repeat bytes of the tar.
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  return UsageError(fmt::format("this is no whole tar: {}", text.substr(0, 2 * kShownMax)));
}

// Reads the content of the entry at which `reader` stands, as far as `bytes_left` allows.
Result<std::string> ReadContent(archive* reader, const std::string& path, size_t* bytes_left,
                                size_t bytes_max) {
  std::string content;
  char buffer[1 << 14];
  for (;;) {
    const la_ssize_t count = archive_read_data(reader, buffer, sizeof buffer);
    if (count < 0) return Unreadable(reader);
    if (count == 0) return content;
    if (static_cast<size_t>(count) > *bytes_left)
      return UsageError(fmt::format(
          "the tar unpacks to more than {} MiB, at the entry \"{}\": leave large files out",
          bytes_max >> 20, Shown(path)));
    *bytes_left -= static_cast<size_t>(count);
    content.append(buffer, static_cast<size_t>(count));
  }
}

// A file whose path is a folder of another's could not be unpacked.
Result<void> CheckFolders(const std::vector<TarFile>& files) {
  std::set<std::string_view> paths;
  for (const TarFile& file : files)
    if (!paths.insert(file.path).second)
      return UsageError(fmt::format("the tar has two files \"{}\"", file.path));
  for (const TarFile& file : files)
    for (size_t at = 0; (at = file.path.find('/', at)) != std::string::npos; ++at)
      if (paths.contains(std::string_view(file.path).substr(0, at)))
        return UsageError(
            fmt::format("\"{}\" of the tar is a file and a folder", file.path.substr(0, at)));
  return {};
}

}  // namespace

Result<std::vector<TarFile>> ReadTar(std::string_view bytes, const TarLimits& limits) {
  const Reader reader(archive_read_new(), &archive_read_free);
  if (reader == nullptr) return EnvironmentError("libarchive has no memory");
  archive_read_support_format_tar(reader.get());
  archive_read_support_filter_gzip(reader.get());
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    return Unreadable(reader.get());
  std::vector<TarFile> files;
  size_t entries = 0, bytes_left = limits.bytes_max;
  for (;;) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) return Unreadable(reader.get());
    if (++entries > limits.files_max)
      return UsageError(fmt::format("the tar has more than {} entries", limits.files_max));
    // Heads have no bound of their own, and compress well.
    const auto passed = static_cast<size_t>(archive_filter_bytes(reader.get(), 0));
    if (passed > limits.bytes_max + entries * kHeadBytesMax)
      return UsageError("the tar has more heads than files: pack it anew");
    const char* path = archive_entry_pathname_utf8(entry);
    if (path == nullptr) return UsageError("the tar has an entry whose name cannot be read");
    ASSAY_ASSIGN_OR_RETURN(std::string safe, SafePath(path, limits));
    ASSAY_RETURN_IF_ERROR(CheckKind(entry, Shown(path)));
    if (archive_entry_filetype(entry) == AE_IFDIR) continue;
    if (safe.empty()) return UsageError("the tar has a file without a name");
    TarFile file{std::move(safe), {}};
    ASSAY_ASSIGN_OR_RETURN(file.content,
                           ReadContent(reader.get(), file.path, &bytes_left, limits.bytes_max));
    files.push_back(std::move(file));
  }
  if (entries == 0) return UsageError("the tar is empty");
  ASSAY_RETURN_IF_ERROR(CheckFolders(files));
  std::sort(files.begin(), files.end(),
            [](const TarFile& a, const TarFile& b) { return a.path < b.path; });
  return files;
}

namespace {

la_ssize_t AddBytes(archive*, void* text, const void* bytes, size_t count) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

}  // namespace

Result<std::string> WriteTar(std::span<const TarFile> files, TarForm form) {
  std::string bytes;
  const Writer writer(archive_write_new(), &archive_write_free);
  if (writer == nullptr) return EnvironmentError("libarchive has no memory");
  const auto failed = [&] {
    const char* why = archive_error_string(writer.get());
    return EnvironmentError(fmt::format("a tar cannot be written: {}", why != nullptr ? why : "?"));
  };
  archive_write_set_format_ustar(writer.get());
  if (form == TarForm::kGzip) {
    archive_write_add_filter_gzip(writer.get());
    // No time in it: the same files give the same bytes.
    archive_write_set_filter_option(writer.get(), "gzip", "timestamp", nullptr);
  }
  archive_write_set_bytes_in_last_block(writer.get(), 1);
  if (archive_write_open(writer.get(), &bytes, nullptr, &AddBytes, nullptr) != ARCHIVE_OK)
    return failed();
  for (const TarFile& file : files) {
    const Entry entry(archive_entry_new(), &archive_entry_free);
    archive_entry_set_pathname(entry.get(), file.path.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(file.content.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    if (archive_write_header(writer.get(), entry.get()) != ARCHIVE_OK) return failed();
    if (archive_write_data(writer.get(), file.content.data(), file.content.size()) !=
        static_cast<la_ssize_t>(file.content.size()))
      return failed();
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK) return failed();
  return bytes;
}

}  // namespace assay

// Looked up by these names (tar.cc). C++ types cross: both sides are built at once.
extern "C" __attribute__((visibility("default"))) assay::Result<std::vector<assay::TarFile>>
AssayReadTar(std::string_view bytes, const assay::TarLimits& limits) {
  return assay::ReadTar(bytes, limits);
}
extern "C" __attribute__((visibility("default"))) assay::Result<std::string> AssayWriteTar(
    std::span<const assay::TarFile> files, assay::TarForm form) {
  return assay::WriteTar(files, form);
}
