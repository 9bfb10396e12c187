// The objects that a session keeps from batch to batch. The session owns it, and uses it on its own
// thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/stop_token.h"
#include "gpu/reserved_memory.h"
#include "hosts/python_runtime.h"
#include "rules/gate1.h"
#include "session/terms.h"
#include "values/judge_device.h"
#include "values/live_slots.h"
#include "values/oracle.h"

namespace assay {

struct Workbench {
  SessionTerms terms;
  StopToken stop;     // of every wait of the session
  uint64_t seed = 0;  // of the weights, and of the first batch
  int threads = 1;
  PythonRuntime python = {};
  std::string settings = {};                      // settings.json of hosts under test
  std::string correctness_settings = {};          // the same for the correctness gate's threads
  ReservedMemory memory = {};                     // of the device; given back once all is gone
  std::unique_ptr<JudgeDevice> device = nullptr;  // null: judged on the CPU
  OracleOptions oracle_options = {};
  std::optional<Oracle> oracle = {};
  std::optional<LiveSlots> live = {};
  CompareRule rule = {};
  std::string tolerance = {};  // as verdicts name it
  double host_start_s = 0;     // start of the oracle's host
  std::optional<OperatorCoverage> coverage =
      {};  // of the problem's operators, once it was looked for
  bool looked_for_coverage = false;
  // JudgeEvents::notice of the present call.
  std::function<void(const std::string&)> notice = [](const std::string&) {};

  const Gpu* gpu() const { return device ? &device->gpu() : nullptr; }
  bool on_device() const { return device != nullptr; }
  // Others need the cores: no host starts that a wrong candidate would not need.
  bool saves_cores() const { return terms.sharers > 1; }
};

}  // namespace assay
