// What `assay doctor` does: looks for everything that a judgement needs, with the command that
// mends what is missing, and measures the machine's ceilings and noise floor.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "doctor/topology.h"
#include "hosts/host.h"
#include "model/machine_profile.h"
#include "model/verdict.h"

namespace assay {

struct Finding {
  enum class State {
    kGood,
    kLimited,  // judging works, with less than there could be
    kMissing,  // judging does not work
  };
  State state = State::kGood;
  std::string name;   // "sandbox"
  std::string found;  // what is there, or what is not
  std::string mend;   // the command that mends it; empty when nothing needs mending
};

struct DoctorRequest {
  std::string python;  // --python
  std::string device;  // "cpu": no GPU; "cuda": one must be there; "": one that is found
  bool ceilings = true;
  bool noise = false;  // takes two to four minutes
  StopToken stop;
};

struct DoctorReport {
  std::vector<Finding> findings;
  Topology topology;
  MachineProfile profile;  // what was measured now; empty parts were not
};

// Errors: kInterrupted. What is missing is a finding, never an error.
Result<DoctorReport> ExamineMachine(
    const DoctorRequest& request,
    const std::function<void(const std::string& stage, double fraction)>& progress);

// The ceilings alone, in a profile that is otherwise empty. Errors: kInterrupted.
Result<MachineProfile> MeasureCeilings(StopToken stop);

// Those of the first GPU that CUDA shows. Errors: kInterrupted; kEnvironment where there is no GPU,
// no NVRTC, or something of Assay's own does not run there.
Result<MachineProfile> MeasureGpu(StopToken stop);

// Why no ceilings fit the GPU that a verdict was judged on, though others were measured; empty
// where it was judged on none, or one fits.
std::string GpuNotice(const MachineProfile& profile, const Verdict& verdict);

// The profile that an earlier `assay doctor` left in the state folder; empty when there is none, or
// it is of another machine. `notice` then says so.
MachineProfile LoadMachineProfile(std::string* notice);
// Keeps what was measured; parts that were not measured this time are taken from the earlier one.
Result<void> SaveMachineProfile(const MachineProfile& profile);

}  // namespace assay
