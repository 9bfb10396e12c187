// Names of files in a spool queue (docs/cluster.md). Each work has one token: an empty file, whose
// name says all that a claim must know of the work. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "queue/work_queue.h"

namespace assay {

struct SpoolToken {
  // "499-01764300000123000007-1f00aa21-7d00c1-cpu-<24 digits>": priority (a lower number first),
  // place in the order, run, group, device, work.
  std::string stem;
  int attempt = 0, failures = 0;
  std::string worker;  // WorkerId; empty: none has claimed it

  std::string priority() const { return stem.substr(0, 3); }
  std::string run() const { return Part(2); }
  std::string group() const { return Part(3); }
  std::string device() const { return Part(4); }
  std::string work() const { return Part(5); }

  std::string FileName() const;

 private:
  std::string Part(int index) const;
};

// nullopt: another file.
std::optional<SpoolToken> ParseSpoolToken(std::string_view file_name);

std::string SpoolRunId(std::string_view run);
std::string SpoolWorkId(const std::string& run, const std::string& key);
std::string SpoolWorkerId(std::string_view worker);
// `place`: rises from work to work.
std::string SpoolStem(const NewWork& work, int64_t place);

}  // namespace assay
