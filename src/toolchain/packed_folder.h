// A candidate of several files: the text that a folder of sources is packed into. That text is the
// candidate's source: it is hashed, kept, shown and sent as any other, and unpacked in sandboxes.
//
//   assay.folder/1
//   entry main.py
//   file csrc/bind.cpp 812
//   ...812 bytes, and a line break
//   file main.py 90
//   ...
//
// Files stand in the order of their paths' bytes, so that equal folders are equal texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "toolchain/build.h"

namespace assay {

inline constexpr size_t kFolderFilesMax = 64;

struct PackedFile {
  std::string_view path;  // within the folder: "csrc/bind.cpp"
  std::string_view content;
};

struct PackedFolder {
  std::string_view entry;  // the path of one of the files
  std::vector<PackedFile> files;

  std::string_view EntryText() const;
};

// Packs a folder's files. Names that begin with a dot and __pycache__ are left out. The entry is
// the file at the top that is called candidate, else the one there with the marks of a form. Errors
// (kUsage): none or several could be it, a link, a file that is not text, over 64 files, a text of
// over kCandidateBytesMax.
Result<std::string> PackFolder(const std::string& folder);

// Returns true if the source says that it is a packed folder, well-formed or not.
bool IsPackedFolder(std::string_view source);

// Returns views of the source's parts; nullopt: PackFolder would not write such a text.
std::optional<PackedFolder> UnpackFolder(std::string_view source);

// Returns the entry's text of a packed folder; of another source the source itself.
std::string_view EntryText(std::string_view source);

// Returns the source with another text of its entry, or as the whole source.
std::string WithEntryText(std::string_view source, std::string_view text);

// The folder in which builders and hosts find candidates, in their sandboxes.
inline constexpr std::string_view kCandidateFolder = "/candidate/";
inline constexpr std::string_view kFilesFolder = "/candidate/folder/";

// Returns the path in the sandbox of the file that is compiled or imported:
// "/candidate/kernel.cpp", or "/candidate/folder/main.cpp".
std::string EntryPath(const CandidateSource& source);

// A file in a sandbox.
struct PlacedFile {
  std::string path, content;
};
// Returns all files of a candidate, where its sandbox has them.
std::vector<PlacedFile> PlacedFiles(const CandidateSource& source);

}  // namespace assay
