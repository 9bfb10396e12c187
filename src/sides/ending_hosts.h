// Hosts on their way out. Taking a device's context down lasts a tenth of a second and more: it
// goes on while the next hosts start, and is waited for before anything is measured.
#pragma once

#include <vector>

#include "sides/live_host.h"

namespace assay {

class EndingHosts {
 public:
  // Kills it, without waiting.
  void Add(LiveHost host) {
    host.host.Kill();
    hosts_.push_back(std::move(host));
  }
  // Waits until all are gone.
  void Await() { hosts_.clear(); }

 private:
  std::vector<LiveHost> hosts_;
};

}  // namespace assay
