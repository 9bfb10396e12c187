// Finds problems by KernelBench's numbers, or by name, in a checkout, a folder or a suite.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

class ProblemIndex {
 public:
  // `folder` holds level1/, level2/..., itself or in KernelBench/; or problems; or a suite.toml.
  // Empty: the installed suites. Errors (kUsage): no such folder, or no problem in it.
  static Result<ProblemIndex> Open(const std::string& folder,
                                   const std::vector<std::string>& suite_folders);

  struct Found {
    std::string path;  // of a .py file, or the name of a suite's problem
    std::string name;
    int level = 0;
    int64_t number = 0;
    std::string mechanism = {};  // as suite.toml names it
  };
  std::optional<Found> ByNumber(int level, int64_t number) const;
  std::optional<Found> ByName(const std::string& name) const;
  // "KernelBench": the folder as the user named it, for messages.
  const std::string& place() const { return place_; }

 private:
  void AddLevels(const std::string& folder);
  void AddFiles(const std::string& folder, int level);

  std::string place_;
  std::map<std::pair<int, int64_t>, Found> by_number_;
  std::map<std::string, Found> by_name_;
};

}  // namespace assay
