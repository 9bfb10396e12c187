#include "toolchain/packed_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "answer/code_of_answer.h"
#include "base/files.h"
#include "base/utf8.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeading = "assay.folder/1\n";
constexpr size_t kPathBytesMax = 200;
constexpr size_t kEntriesMax = 4096;  // of a folder that is walked

bool IsPlainPath(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax || !IsUtf8(path)) return false;
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\\';
  };
  if (!std::ranges::all_of(path, is_plain)) return false;
  for (std::string_view rest = path;;) {
    const size_t end = rest.find('/');
    const std::string_view part = rest.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    rest.remove_prefix(end + 1);
  }
}

bool IsText(std::string_view content) {
  return content.find('\0') == std::string_view::npos && IsUtf8(content);
}

std::string Packed(std::string_view entry, const std::map<std::string, std::string>& files) {
  std::string text = fmt::format("{}entry {}\n", kHeading, entry);
  for (const auto& [path, content] : files)
    text += fmt::format("file {} {}\n{}\n", path, content.size(), content);
  return text;
}

std::optional<std::string_view> TakeLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  return line;
}

// "file csrc/bind.cpp 812", and the bytes behind it.
std::optional<PackedFile> TakeFile(std::string_view* rest) {
  constexpr std::string_view kFile = "file ";
  const auto words = TakeLine(rest);
  if (!words || !words->starts_with(kFile)) return std::nullopt;
  const size_t blank = words->rfind(' ');
  if (blank < kFile.size()) return std::nullopt;
  PackedFile file{words->substr(kFile.size(), blank - kFile.size()), {}};
  size_t bytes = 0;
  const char* end = words->data() + words->size();
  const auto [stop, error] = std::from_chars(words->data() + blank + 1, end, bytes);
  if (error != std::errc() || stop != end || words->substr(blank + 1) != std::to_string(bytes) ||
      bytes >= rest->size() || (*rest)[bytes] != '\n' || !IsPlainPath(file.path))
    return std::nullopt;
  file.content = rest->substr(0, bytes);
  rest->remove_prefix(bytes + 1);
  return file;
}

std::unexpected<Error> CannotPack(const fs::path& path, std::string_view why) {
  return UsageError(fmt::format("{} {}", path.string(), why));
}

// The files of a folder, by path.
class Reader {
 public:
  explicit Reader(fs::path folder) : folder_(std::move(folder)) {}

  Result<std::map<std::string, std::string>> Read() {
    std::error_code code;
    size_t entries = 0;
    for (fs::recursive_directory_iterator entry(folder_, code), end; !code && entry != end;
         entry.increment(code)) {
      if (++entries > kEntriesMax)
        return CannotPack(folder_,
                          "holds too much: give a folder of the candidate's sources alone");
      const std::string name = entry->path().filename().string();
      const bool is_folder = entry->symlink_status(code).type() == fs::file_type::directory;
      if (name.starts_with('.') || name == "__pycache__") {
        if (is_folder) entry.disable_recursion_pending();
      } else if (!is_folder) {
        ASSAY_RETURN_IF_ERROR(Add(*entry));
      }
    }
    if (code) return CannotPack(folder_, "cannot be read: " + code.message());
    return std::move(files_);
  }

 private:
  Result<void> Add(const fs::directory_entry& entry) {
    std::error_code code;
    const fs::path& path = entry.path();
    if (entry.is_symlink(code)) return CannotPack(path, "is a link: put the file itself there");
    if (!entry.is_regular_file(code)) return CannotPack(path, "is no file");
    const std::string inside = path.lexically_relative(folder_).string();
    if (!IsPlainPath(inside)) return CannotPack(path, "has a name that no candidate's file has");
    if (files_.size() == kFolderFilesMax)
      return CannotPack(folder_, fmt::format("has over {} files: give a folder of the candidate's "
                                             "sources alone",
                                             kFolderFilesMax));
    ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kCandidateBytesMax));
    if (!IsText(content))
      return CannotPack(path,
                        "is not text: a candidate's folder has its sources alone, and what they "
                        "compile to is built here");
    files_.emplace(inside, std::move(content));
    return {};
  }

  fs::path folder_;
  std::map<std::string, std::string> files_;
};

bool IsEntryName(const std::string& path) {
  constexpr std::string_view kEndings[] = {".py", ".cu", ".cpp", ".cc", ".cxx", ".c"};
  return !path.contains('/') &&
         std::ranges::find(kEndings, fs::path(path).extension().string()) != std::end(kEndings);
}

Result<std::string> EntryOf(const fs::path& folder,
                            const std::map<std::string, std::string>& files) {
  std::vector<std::string> named, marked;
  for (const auto& [path, content] : files) {
    if (!IsEntryName(path)) continue;
    if (fs::path(path).stem() == "candidate") named.push_back(path);
    if (MarkedForm(content) != CodeForm::kAny) marked.push_back(path);
  }
  const std::vector<std::string>& found = named.empty() ? marked : named;
  if (found.size() == 1) return found.front();
  if (found.empty())
    return CannotPack(folder,
                      "is no candidate: no file at its top has class ModelNew, ASSAY_KERNEL or a "
                      "'//! launch' line, and none is called candidate.py, candidate.cpp or the "
                      "like");
  return CannotPack(folder,
                    fmt::format("has several files that could be its entry ({} and {}): "
                                "call the one that is to be judged candidate{}",
                                found[0], found[1], fs::path(found[0]).extension().string()));
}

}  // namespace

std::string_view PackedFolder::EntryText() const {
  return std::ranges::find(files, entry, &PackedFile::path)->content;
}

Result<std::string> PackFolder(const std::string& folder) {
  ASSAY_ASSIGN_OR_RETURN(const auto files, Reader(folder).Read());
  ASSAY_ASSIGN_OR_RETURN(const std::string entry, EntryOf(folder, files));
  std::string text = Packed(entry, files);
  if (text.size() > kCandidateBytesMax)
    return CannotPack(folder, "has over 1 MiB of sources, which is the most for a candidate");
  return text;
}

bool IsPackedFolder(std::string_view source) { return source.starts_with(kHeading); }

std::optional<PackedFolder> UnpackFolder(std::string_view source) {
  constexpr std::string_view kEntry = "entry ";
  if (!IsPackedFolder(source) || source.size() > kCandidateBytesMax || !IsText(source))
    return std::nullopt;
  std::string_view rest = source.substr(kHeading.size());
  const auto words = TakeLine(&rest);
  if (!words || !words->starts_with(kEntry)) return std::nullopt;
  PackedFolder folder{words->substr(kEntry.size()), {}};
  while (!rest.empty()) {
    const auto file = TakeFile(&rest);
    // A file stands once, and no path goes through a file.
    if (!file || folder.files.size() == kFolderFilesMax) return std::nullopt;
    for (const PackedFile& other : folder.files)
      if (other.path >= file->path || file->path.starts_with(std::string(other.path) + "/"))
        return std::nullopt;
    folder.files.push_back(*file);
  }
  if (!IsEntryName(std::string(folder.entry)) ||
      std::ranges::find(folder.files, folder.entry, &PackedFile::path) == folder.files.end())
    return std::nullopt;
  return folder;
}

std::string_view EntryText(std::string_view source) {
  const auto folder = UnpackFolder(source);
  return folder ? folder->EntryText() : source;
}

std::string WithEntryText(std::string_view source, std::string_view text) {
  const auto folder = UnpackFolder(source);
  if (!folder) return std::string(text);
  std::map<std::string, std::string> files;
  for (const PackedFile& file : folder->files)
    files.emplace(file.path, file.path == folder->entry ? text : file.content);
  return Packed(folder->entry, files);
}

std::string EntryPath(const CandidateSource& source) {
  if (const auto folder = UnpackFolder(source.content))
    return std::string(kFilesFolder) + std::string(folder->entry);
  const std::string_view name = source.form == CandidateForm::kPython ? "candidate.py"
                                : source.language == "cuda"           ? "kernel.cu"
                                : source.language == "c"              ? "kernel.c"
                                                                      : "kernel.cpp";
  return std::string(kCandidateFolder) + std::string(name);
}

std::vector<PlacedFile> PlacedFiles(const CandidateSource& source) {
  const auto folder = UnpackFolder(source.content);
  if (!folder) return {{EntryPath(source), source.content}};
  std::vector<PlacedFile> files;
  for (const PackedFile& file : folder->files)
    files.push_back(
        {std::string(kFilesFolder) + std::string(file.path), std::string(file.content)});
  return files;
}

}  // namespace assay
