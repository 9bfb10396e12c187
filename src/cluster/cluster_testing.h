// A queue in a folder, works and a worker's answers for the tests of clusters.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/version.h"
#include "cluster/commands.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "queue/open_queue.h"

namespace assay {

// A problem of a suite of its own, which no node has installed.
struct FolderWithQueue {
  TemporaryFolder folder = TemporaryFolder::Create().value();
  std::string place = (folder.path() / "queue").string();

  std::unique_ptr<WorkQueue> Open(QueueTerms terms = {}) const {
    return OpenQueue(place, terms).value();
  }
  std::string Problem() const {
    const std::string path = (folder.path() / "twice.py").string();
    (void)WriteFileAtomically(path, "import torch\n");
    return path;
  }
};

// Says what a function of the test tells for each command.
class FakeCommands : public Commands {
 public:
  using Answer = std::function<Result<CommandAnswer>(const std::vector<std::string>& words,
                                                     const std::string& input)>;
  explicit FakeCommands(Answer answer) : answer_(std::move(answer)) {}
  Result<CommandAnswer> Run(const std::vector<std::string>& words, const std::string& input,
                            double) override {
    calls.push_back(words);
    return answer_(words, input);
  }
  // How often a program was called.
  size_t Count(const std::string& program) const {
    return static_cast<size_t>(std::count_if(
        calls.begin(), calls.end(), [&](const auto& words) { return words[0] == program; }));
  }

  std::vector<std::vector<std::string>> calls;

 private:
  const Answer answer_;
};

}  // namespace assay
