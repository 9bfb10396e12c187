// Runners of a server as its child processes: the same command that makes any machine a runner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

class LocalRunners {
 public:
  // `program`: assay itself. They end with the thread that calls Tend, also if it is killed.
  LocalRunners(std::string program, std::string server, std::string token_file,
               const std::vector<std::string>& devices, std::vector<std::string> more_arguments);
  ~LocalRunners();
  LocalRunners(const LocalRunners&) = delete;
  LocalRunners& operator=(const LocalRunners&) = delete;

  // Starts those that do not run: at first, and again some time after they ended. One thread calls
  // it, about once a second.
  void Tend(int64_t now_ms);
  // Asks all to end, which gives their jobs back. None is started from then on.
  void Interrupt();
  // True once none runs.
  bool AllEnded();

 private:
  struct Runner {
    std::string device;
    pid_t pid = 0;  // 0: not running
    int64_t start_at_ms = 0, started_ms = 0;
    int64_t pause_ms = 0;  // before it is started again
  };
  void Start(Runner* runner, int64_t now_ms);
  void Reap(Runner* runner, int64_t now_ms);

  const std::string program_, server_, token_file_;
  const std::vector<std::string> more_arguments_;
  std::vector<Runner> runners_;
  bool ending_ = false;
};

}  // namespace assay
