// assay serve: a board, a queue of jobs and a class, on the loopback interface.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace assay {

struct ServeOptions {
  ClusterOptions cluster;
  std::string folder;
  std::string archive;  // URL of a PostgreSQL database; empty: a file in the folder
  int port = 8080;
  std::string host = "127.0.0.1";
  std::vector<std::string> devices;  // of local runners; empty: none
  int64_t queued = 1000, quota = 500;
  double verdict_seconds = 60;
  double spot_checks = 5;  // percent
  bool behind_proxy = false, is_public = false, demo = false;
  bool allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunServe(const ServeOptions& options);

}  // namespace assay
