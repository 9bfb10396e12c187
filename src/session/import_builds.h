// Compiles what importing candidates compiles, before their problem is open and beside the
// judgement of others, into the cache of artifacts (builders/python_build.h). Threads of its own do
// so, of lower priority, on the cores that are not set apart for measurements.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/stop_token.h"
#include "session/terms.h"

namespace assay {

class ImportBuilds {
 public:
  // Compiles one; what fails is left to the candidate's build. Called from several threads.
  using Compile = std::function<void(const CandidateSource& source, StopToken stop)>;

  // Begins at once. `stop` must outlive this object.
  ImportBuilds(std::vector<CandidateSource> sources, const std::atomic<bool>& stop,
               Compile compile);
  // Stops what is under way, and waits for its end.
  ~ImportBuilds();
  // Begins no more, and waits for those under way.
  void Settle();

 private:
  void Work();

  const std::vector<CandidateSource> sources_;
  const std::atomic<bool>& stop_;
  const Compile compile_;
  std::atomic<bool> dropped_ = false;
  std::atomic<size_t> next_ = 0;
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

// Begins to compile those that may be compiled so, by terms on a device; null: none may.
std::unique_ptr<ImportBuilds> BeginImportBuilds(SessionTerms terms,
                                                std::vector<CandidateSource> sources,
                                                const std::atomic<bool>& stop);

}  // namespace assay
