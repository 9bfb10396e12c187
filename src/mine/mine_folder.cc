#include "mine/mine_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/imported.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kCandidateBytesMax = size_t{16} << 20;
constexpr size_t kNameLengthMax = 80;

std::string SafeName(std::string_view text) {
  std::string name(text.substr(0, kNameLengthMax));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; },
      '_');
  return name;
}

bool IsSameProblem(const Mined& one, const Mined& other) {
  return one.problem == other.problem && one.hash == other.hash && one.size == other.size &&
         one.set == other.set && one.device == other.device;
}

int64_t SampleOf(const Mined& mined) {
  const auto& modes = MineModes();
  return std::find(modes.begin(), modes.end(), mined.mode) - modes.begin();
}

}  // namespace

Result<MineFolder> MineFolder::Open(const std::string& folder) {
  ASSAY_ASSIGN_OR_RETURN(LineFile file, LineFile::Open((fs::path(folder) / kMinedName).string(),
                                                       "assay mine", IsMined));
  MineFolder opened(folder, std::move(file));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, opened.file_.Read());
  ASSAY_RETURN_IF_ERROR(
      ForEachLine(text, opened.file_.path(), IsMined, [&](std::string_view line) -> Result<void> {
        ASSAY_ASSIGN_OR_RETURN(Mined mined, MinedFromJson(line));
        opened.Add(std::move(mined));
        return {};
      }));
  return opened;
}

void MineFolder::Add(Mined mined) {
  std::erase_if(all_, [&](const Mined& each) { return each.key == mined.key; });
  all_.push_back(std::move(mined));
}

const Mined* MineFolder::Find(std::string_view key) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Mined& each) { return each.key == key; });
  return found == all_.end() ? nullptr : &*found;
}

std::string MineFolder::FreeName(const Mined& mined) const {
  const std::string name = SafeName(mined.problem + "_" + mined.mode);
  std::string free = name;
  const auto taken = [&](const Mined& each) { return each.name == free && each.key != mined.key; };
  for (int number = 2; std::any_of(all_.begin(), all_.end(), taken); ++number)
    free = fmt::format("{}_{}", name, number);
  return free;
}

Result<void> MineFolder::Keep(Mined mined) {
  if (mined.refusal.empty()) {
    const auto same = std::find_if(all_.begin(), all_.end(), [&](const Mined& each) {
      return each.key != mined.key && each.refusal.empty() && IsSameProblem(each, mined) &&
             each.code.versions == mined.code.versions &&
             each.code.original_triton_code == mined.code.original_triton_code;
    });
    if (same != all_.end()) {
      mined.refusal = fmt::format("its code is that of mode {}", same->mode);
      mined.code = {};
    } else {
      mined.name = FreeName(mined);
    }
  }
  ASSAY_RETURN_IF_ERROR(file_.Append(MinedToJson(mined)));
  Add(std::move(mined));
  return {};
}

Result<std::string> MineFolder::WriteManifest(const std::vector<std::string>& keys) const {
  std::string manifest;
  for (const std::string& key : keys) {
    const Mined* mined = Find(key);
    if (mined == nullptr || !mined->refusal.empty()) continue;
    const std::string file = fmt::format("candidates/{}.py", mined->name);
    const fs::path path = fs::path(folder_) / file;
    const auto there = ReadFile(path, kCandidateBytesMax);
    if (!there || *there != mined->code.triton_code)
      ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, mined->code.triton_code));
    Json line = {{"candidate", file}, {"problem", mined->path}, {"sample", SampleOf(*mined)}};
    if (!mined->size.empty()) line["size"] = mined->size;
    if (!mined->set.empty()) line["set"] = mined->set;
    manifest += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  const fs::path path = fs::path(folder_) / kManifestName;
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, manifest));
  return path.string();
}

}  // namespace assay
