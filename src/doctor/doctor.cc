#include "doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "builders/device_build.h"
#include "cuda/driver.h"
#include "doctor/arithmetic.h"
#include "doctor/bandwidth.h"
#include "doctor/checks.h"
#include "doctor/gpu_ceilings.h"
#include "doctor/noise.h"
#include "doctor/quiet.h"
#include "doctor/topology.h"
#include "gpu/canary.h"
#include "machine/machine.h"
#include "toolchain/nvrtc.h"

namespace assay {
namespace {

constexpr size_t kProfileBytesMax = 1 << 20;
constexpr int kRepeats = 5;

std::filesystem::path ProfilePath() { return StateFolder() / "machine.json"; }

// Four times all the caches of a level together, so that little of an array is found there again,
// within what memory allows.
uint64_t ArrayBytes(const Topology& topology, size_t threads) {
  uint64_t largest = 0;
  for (const CacheLevel& cache : topology.caches) {
    const auto sharing = static_cast<uint64_t>(std::max(1, cache.cores));
    const uint64_t count = (static_cast<uint64_t>(topology.cores) + sharing - 1) / sharing;
    largest = std::max(largest, cache.size_bytes * std::max<uint64_t>(1, count));
  }
  const uint64_t wanted = std::max<uint64_t>(4 * largest, uint64_t{64} << 20);
  const uint64_t affordable = AvailableMemoryBytes() / 8 / 3;
  return std::min(wanted, affordable) / threads;
}

Ceilings Measure(const std::vector<int>& cpus, const Topology& topology) {
  const Bandwidths traffic = MeasureBandwidth(cpus, ArrayBytes(topology, cpus.size()), kRepeats);
  const ArithmeticRates arithmetic = MeasureArithmetic(cpus, kRepeats);
  return {static_cast<int>(cpus.size()),
          traffic.read_bytes_s,
          traffic.copy_bytes_s,
          traffic.triad_bytes_s,
          arithmetic.float32_operations_s,
          arithmetic.float64_operations_s};
}

// What a noise floor takes, before any of it is measured.
constexpr double kNoiseS = 180;

bool Interrupted(StopToken stop) { return stop.stopped(); }

bool AnyMissing(const std::vector<DoctorFinding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const DoctorFinding& finding) {
    return finding.state == DoctorFinding::State::kMissing;
  });
}

Result<void> AddNoise(const DoctorRequest& request, DoctorReport* report,
                      const std::function<void(const std::string&, double)>& progress) {
  const int64_t begin_ns = MonotonicNs();
  const auto noise = MeasureNoise(request.python, request.stop, [&](double fraction) {
    const double took_s = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
    const double left_s = fraction > 0 ? took_s / fraction * (1 - fraction) : kNoiseS;
    progress(fmt::format("noise floor, about {:.0f} s left", left_s), fraction);
  });
  if (!noise && noise.error().kind == ErrorKind::kInterrupted)
    return std::unexpected(noise.error());
  if (!noise) {
    report->findings.push_back(
        {DoctorFinding::State::kMissing, "trial judgement", noise.error().message, ""});
    return {};
  }
  report->profile.empty_call_ns = noise->empty_call_ns;
  report->profile.empty_python_call_ns = noise->empty_python_call_ns;
  // A floor that was measured beside other programs would hide every small gain from now on.
  if (!noise->disturbed) {
    report->profile.noise = noise->points;
  } else {
    report->findings.push_back({DoctorFinding::State::kLimited, "quiet",
                                "other programs took cores while the noise floor was measured: it "
                                "was not kept",
                                "assay doctor --noise, once the machine is quiet"});
  }
  return {};
}

MachineProfile NewProfile(const Topology& topology) {
  MachineProfile profile;
  profile.created = UtcTimestamp();
  const Machine machine = DescribeMachine();
  profile.cpu = machine.cpu;
  profile.cores = machine.cores;
  profile.caches = topology.caches;
  return profile;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

Result<GpuCeilings> CeilingsOf(const Gpu& gpu, StopToken stop) {
  const KernelImages images = [&](std::string_view file, std::span<const char* const> kernels) {
    return OwnKernelImage({&file, 1}, kernels, gpu.facts().architecture, stop);
  };
  return MeasureGpuCeilings(gpu, images, {}, stop);
}

// Figures are kept in the profile alone where all of them came out right.
Result<void> ExamineGpu(const DoctorRequest& request, DoctorReport* report,
                        const std::function<void(const std::string&, double)>& progress) {
  constexpr const char* kName = "GPU";
  const auto found = [&](DoctorFinding::State state, std::string text, std::string mend) {
    report->findings.push_back({state, kName, std::move(text), std::move(mend)});
    return Result<void>();
  };
  if (request.device == "cpu") return {};
  const auto short_of =
      request.device == "cuda" ? DoctorFinding::State::kMissing : DoctorFinding::State::kLimited;
  auto gpu = Gpu::Open();
  if (!gpu) {
    const std::string& why = gpu.error().message;
    if (gpu.error().code == ErrorCode::kNoDevice && request.device.empty())
      return found(DoctorFinding::State::kGood, "none: judging is on the processor (" + why + ")",
                   "");
    return found(short_of, why, "NVIDIA's driver, and a GPU that it shows");
  }
  auto canary = GpuCanary::Create(*gpu);
  const auto answer =
      canary ? canary->Ask(*gpu, kGpuAnswerS) : Result<void>(std::unexpected(canary.error()));
  if (!answer) return found(short_of, answer.error().message, "reset the GPU, or reboot");
  LiftQuarantine(QuarantineFolder(), gpu->facts().uuid);
  const auto nvrtc = FindNvrtc();
  if (!nvrtc)
    return found(short_of, fmt::format("{}, but {}", gpu->Describe(), nvrtc.error().message),
                 "a CUDA toolkit, or CUDA_HOME set to one");
  if (!request.ceilings || !RequireSandbox())
    return found(DoctorFinding::State::kGood, gpu->Describe(), "");
  progress("ceilings of the GPU", 0);
  auto ceilings = CeilingsOf(*gpu, request.stop);
  if (!ceilings && ceilings.error().kind == ErrorKind::kInterrupted)
    return std::unexpected(ceilings.error());
  if (!ceilings)
    return found(short_of,
                 fmt::format("{}: its ceilings are not known, as {}", gpu->Describe(),
                             FirstLine(ceilings.error().message)),
                 "");
  KeepGpuCeilings(std::move(*ceilings), &report->profile);
  return found(DoctorFinding::State::kGood, gpu->Describe(), "");
}

Result<void> AddCeilings(const Topology& topology, StopToken stop,
                         const std::function<void(const std::string&, double)>& progress,
                         MachineProfile* profile) {
  const std::vector<int>& usable = UsableCpus();
  std::vector<std::vector<int>> teams{{usable.back()}};
  if (usable.size() > 1) teams.push_back(usable);
  for (const std::vector<int>& team : teams) {
    progress(team.size() == 1 ? "ceilings of one core" : "ceilings of all cores", 0);
    profile->ceilings.push_back(Measure(team, topology));
    if (Interrupted(stop)) return Fail(ErrorKind::kInterrupted, "interrupted");
  }
  return {};
}

std::string WhyNotKept(const CeilingSigns& signs, size_t cores) {
  if (CeilingsStand({signs.cores_of_others, 0}, cores))
    return "PyTorch's matrix product is faster than the ceiling of the core it ran on: something "
           "held up the measurement, and the ceilings were not kept";
  return fmt::format(
      "other programs took {:.1f} of {} cores while the ceilings were measured: they were not kept",
      signs.cores_of_others, cores);
}

// Adds no ceilings that other programs spoilt: each percentage of the peak would be too high.
Result<void> AddQuietCeilings(const DoctorRequest& request,
                              const std::function<void(const std::string&, double)>& progress,
                              DoctorReport* report) {
  MachineProfile& profile = report->profile;
  const std::vector<int>& usable = UsableCpus();
  const bool has_pytorch = !AnyMissing(report->findings);
  MatrixProduct product;
  ASSAY_ASSIGN_OR_RETURN(
      const CeilingSigns signs, MeasureUntilQuiet(usable.size(), [&]() -> Result<CeilingSigns> {
        profile.ceilings.clear();
        const BusyTimes begin = ReadBusyTimes(usable);
        ASSAY_RETURN_IF_ERROR(AddCeilings(report->topology, request.stop, progress, &profile));
        const double cores_of_others = CoresOfOthers(begin, ReadBusyTimes(usable));
        if (!has_pytorch) return CeilingSigns{cores_of_others, 0};
        progress("PyTorch's matrix product", 0);
        const double rate = RateFor(profile.ceilings.front(), false).operations_s;
        ASSAY_ASSIGN_OR_RETURN(product, CheckMatrixProduct(request.python, rate, request.stop));
        return CeilingSigns{cores_of_others, product.share};
      }));
  if (CeilingsStand(signs, usable.size())) {
    if (has_pytorch) report->findings.push_back(std::move(product.finding));
    return {};
  }
  profile.ceilings.clear();
  report->findings.push_back({DoctorFinding::State::kLimited, "quiet",
                              WhyNotKept(signs, usable.size()),
                              "assay doctor, once the machine is quiet"});
  return {};
}

Result<void> ExamineProcessor(const DoctorRequest& request,
                              const std::function<void(const std::string&, double)>& progress,
                              DoctorReport* report) {
  progress("looking around", 0);
  report->topology = ReadTopology();
  ASSAY_ASSIGN_OR_RETURN(report->findings, CheckMachine(request.python, request.stop));
  MachineProfile& profile = report->profile;
  profile = NewProfile(report->topology);
  const bool missing = AnyMissing(report->findings);
  if (request.ceilings) ASSAY_RETURN_IF_ERROR(AddQuietCeilings(request, progress, report));
  if (missing) return {};
  if (request.noise) return AddNoise(request, report, progress);
  return {};
}

}  // namespace

Result<DoctorReport> ExamineMachine(
    const DoctorRequest& request,
    const std::function<void(const std::string& stage, double fraction)>& progress) {
  DoctorReport report;
  // Else whoever wants a GPU hears that none is there once the processor was measured for minutes.
  cuda::Driver driver;
  char why[300];
  if (request.device == "cuda" && request.ceilings &&
      !cuda::OpenDriver(&driver, nullptr, why, sizeof why))
    return EnvironmentError(std::string(why) +
                            "\n  it comes with NVIDIA's driver; assay doctor --device cpu measures "
                            "the processor alone");
  ASSAY_RETURN_IF_ERROR(ExamineProcessor(request, progress, &report));
  // Last: CUDA stays in this process once it was opened.
  ASSAY_RETURN_IF_ERROR(ExamineGpu(request, &report, progress));
  return report;
}

bool IsOld(std::string_view created, std::string_view now) {
  constexpr int kMonths = 6;
  const auto months = [](std::string_view time) {
    int year = 0, month = 0;
    std::from_chars(time.data(), time.data() + std::min<size_t>(4, time.size()), year);
    if (time.size() >= 7) std::from_chars(time.data() + 5, time.data() + 7, month);
    return 12 * year + month;
  };
  return months(now) - months(created) > kMonths;
}

Result<MachineProfile> MeasureCeilings(StopToken stop) {
  const Topology topology = ReadTopology();
  MachineProfile profile = NewProfile(topology);
  ASSAY_RETURN_IF_ERROR(AddCeilings(
      topology, stop, [](const std::string&, double) {}, &profile));
  return profile;
}

Result<MachineProfile> MeasureGpu(StopToken stop) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  ASSAY_ASSIGN_OR_RETURN(const Gpu gpu, Gpu::Open());
  ASSAY_ASSIGN_OR_RETURN(GpuCeilings ceilings, CeilingsOf(gpu, stop));
  MachineProfile profile = NewProfile(ReadTopology());
  KeepGpuCeilings(std::move(ceilings), &profile);
  return profile;
}

std::string GpuNotice(const MachineProfile& profile, const Verdict& verdict) {
  if (verdict.machine.gpu.empty() || verdict.roofline || !verdict.speed || verdict.speed->against ||
      profile.gpus.empty())
    return {};
  return fmt::format(
      "the ceilings in {} are of another GPU or driver ({}): run assay doctor for this one's",
      ProfilePath().string(), profile.gpus.back().name);
}

MachineProfile LoadMachineProfile(std::string* notice) {
  std::error_code unknown;
  if (!std::filesystem::exists(ProfilePath(), unknown)) return {};
  const auto text = ReadFile(ProfilePath(), kProfileBytesMax);
  auto profile = text ? MachineProfileFromJson(*text) : std::unexpected(text.error());
  if (!profile) {
    *notice = fmt::format("{} cannot be used ({}): run assay doctor again", ProfilePath().string(),
                          profile.error().message);
    return {};
  }
  const Machine machine = DescribeMachine();
  if (profile->cpu == machine.cpu && profile->cores == machine.cores) {
    const bool measured = !profile->ceilings.empty() || !profile->gpus.empty();
    if (measured && IsOld(profile->created, UtcTimestamp()))
      *notice = fmt::format("the ceilings in {} are of {}: run assay doctor again",
                            ProfilePath().string(), profile->created.substr(0, 10));
    return *profile;
  }
  *notice = fmt::format(
      "{} was measured on another machine ({}, {} cores): run assay doctor for this one's ceilings "
      "and noise floor",
      ProfilePath().string(), profile->cpu, profile->cores);
  return {};
}

Result<void> SaveMachineProfile(const MachineProfile& profile) {
  std::string ignored;
  MachineProfile merged = profile;
  const MachineProfile earlier = LoadMachineProfile(&ignored);
  if (merged.ceilings.empty() && !earlier.ceilings.empty()) {
    merged.ceilings = earlier.ceilings;
    merged.created = earlier.created;
  }
  if (merged.noise.empty()) merged.noise = earlier.noise;
  std::vector<GpuCeilings> now = std::move(merged.gpus);
  merged.gpus = earlier.gpus;
  for (GpuCeilings& gpu : now) KeepGpuCeilings(std::move(gpu), &merged);
  if (!(merged.empty_call_ns > 0)) merged.empty_call_ns = earlier.empty_call_ns;
  if (!(merged.empty_python_call_ns > 0))
    merged.empty_python_call_ns = earlier.empty_python_call_ns;
  return WriteFileAtomically(ProfilePath(), MachineProfileToJson(merged) + "\n");
}

}  // namespace assay
