// assay workers PLACE: the workers of a queue.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace assay {

struct WorkersOptions {
  std::string place;
  double lease_s = 60;
  bool json = false;
  std::string drain, why, resume;  // workers

  void AddTo(CLI::App& command);
};

int RunWorkers(const WorkersOptions& options);

}  // namespace assay
