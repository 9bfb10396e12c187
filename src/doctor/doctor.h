// Examines the machine for `assay doctor`: looks for everything that a judgement needs, names the
// command that mends a gap, and measures the machine's ceilings and noise floor.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hosts/host.h"
#include "model/doctor_report.h"
#include "model/verdict.h"

namespace assay {

struct DoctorRequest {
  std::string python;  // --python
  std::string device;  // "cpu": no GPU; "cuda": a GPU must exist; "": a GPU if found
  bool ceilings = true;
  bool noise = false;  // takes two to four minutes
  StopToken stop;
};

// Examines the machine. A missing part is a finding, never an error. Errors: kInterrupted.
Result<DoctorReport> ExamineMachine(
    const DoctorRequest& request,
    const std::function<void(const std::string& stage, double fraction)>& progress);

// Measures the ceilings alone; other parts of the profile are empty. Errors: kInterrupted.
Result<MachineProfile> MeasureCeilings(StopToken stop);

// Measures the ceilings of the first GPU that CUDA shows. Errors: kInterrupted; kEnvironment: no
// GPU, no NVRTC, or one of Assay's kernels does not run there.
Result<MachineProfile> MeasureGpu(StopToken stop);

// Explains why no measured ceilings fit the verdict's GPU although there are some. Empty if the
// verdict has no GPU, or some fit.
std::string GpuNotice(const MachineProfile& profile, const Verdict& verdict);

// Returns true if a profile of `created` is over six months old at `now`, both in ISO 8601:
// kernels, drivers and firmware have changed since.
bool IsOld(std::string_view created, std::string_view now);

// Loads the profile of an earlier `assay doctor` from the state folder. Empty if there is none, or
// it is another machine's; `notice` then says so, and also of an old one, which is used.
MachineProfile LoadMachineProfile(std::string* notice);
// Saves the profile; takes parts that were not measured this time from the earlier one.
Result<void> SaveMachineProfile(const MachineProfile& profile);

}  // namespace assay
