// Results of jobs that a server has not answered for yet. Each is a file, so that no finished
// verdict is lost when the server or the runner is away.
#pragma once

#include <deque>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace assay {

struct KeptResult {
  std::string job;
  std::string body;            // of the call that ends the job
  std::filesystem::path path;  // empty: it could not be written
};

class KeptResults {
 public:
  // Reads the results that earlier runners left in the folder. Files that are no results are left
  // alone.
  explicit KeptResults(std::filesystem::path folder);
  // Adds a result. It is kept in memory even after an error (kEnvironment: it is not on disk).
  Result<void> Keep(const std::string& job, const std::string& lease, std::string body);

  bool empty() const { return results_.empty(); }
  size_t size() const { return results_.size(); }
  const KeptResult& oldest() const { return results_.front(); }
  // The server has counted or refused it.
  void DropOldest();
  const std::filesystem::path& folder() const { return folder_; }

 private:
  const std::filesystem::path folder_;
  std::deque<KeptResult> results_;
};

}  // namespace assay
