// The folder of assay mine: mined.jsonl has all that was mined or refused, candidates/ and
// manifest.jsonl are what assay run takes. A call goes on where an earlier one ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/line_file.h"
#include "base/result.h"
#include "mine/mined.h"

namespace assay {

class MineFolder {
 public:
  // Makes it if it is missing. One process at a time has it. Errors: a line of mined.jsonl that
  // cannot be read (kUsage), or it cannot be used (kEnvironment).
  static Result<MineFolder> Open(const std::string& folder);

  // In the order in which they were added; of one key the newest alone.
  const std::vector<Mined>& all() const { return all_; }
  // Null: it was not mined yet. Valid until the next Keep().
  const Mined* Find(std::string_view key) const;
  // Names the candidate, and keeps the line. On disk when this returns. Code that another mode of
  // the same problem has brought is kept as a refusal. Errors: kEnvironment.
  Result<void> Keep(Mined mined);

  // Writes the candidates of these keys, and a manifest of them, whose path is returned. Errors:
  // kEnvironment.
  Result<std::string> WriteManifest(const std::vector<std::string>& keys) const;

 private:
  MineFolder(std::string folder, LineFile file)
      : folder_(std::move(folder)), file_(std::move(file)) {}
  void Add(Mined mined);
  std::string FreeName(const Mined& mined) const;

  std::string folder_;
  LineFile file_;
  std::vector<Mined> all_;
};

inline constexpr const char* kMinedName = "mined.jsonl";

}  // namespace assay
