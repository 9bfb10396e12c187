#include "builders/kernel_records.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/trace.h"
#include "builders/build_steps.h"
#include "rules/occupancy.h"
#include "toolchain/cubin.h"
#include "toolchain/lines.h"
#include "wire/launches.h"

namespace assay {
namespace {

constexpr double kListingTimeoutS = 20;
constexpr size_t kCubinsMax = 8;
constexpr size_t kKernelsMax = 32;
constexpr size_t kNameBytesMax = 100;
constexpr const char* kListing = "/tmp/listing";
constexpr const char* kCubin = "/candidate/kernel.cubin";
// The prefix of what the cache keeps, with the version of what is counted.
constexpr const char* kCacheMark = "instructions/1";

std::vector<CompiledKernel> CompiledKernels(const std::string& artifact) {
  std::vector<CompiledKernel> kernels;
  for (const std::string_view cubin : FindCubins(artifact))
    for (CompiledKernel& kernel : ReadCubin(cubin)) kernels.push_back(std::move(kernel));
  return kernels;
}

KernelRecord RecordOf(const CompiledKernel& kernel, const BuiltCandidate& candidate) {
  KernelRecord record;
  record.name = KernelDisplayName(kernel.name);
  if (record.name.size() > kNameBytesMax)
    record.name = record.name.substr(0, kNameBytesMax) + "...";
  record.registers = kernel.registers;
  record.stack_bytes = kernel.stack_bytes;
  record.shared_bytes = kernel.shared_bytes;
  if (const auto mix = candidate.instructions.find(kernel.name);
      mix != candidate.instructions.end()) {
    record.instructions = mix->second.counts;
    record.widest_load_bytes = mix->second.widest_load_bytes;
  }
  return record;
}

int64_t Product(const uint32_t (&sizes)[3]) {
  return int64_t{sizes[0]} * int64_t{sizes[1]} * int64_t{sizes[2]};
}

void AddLaunch(const wire::Launch& launch, const GpuFacts& gpu, KernelRecord* record) {
  record->launches = 1;
  record->threads = Product(launch.block);
  record->blocks = Product(launch.grid);
  record->shared_bytes += launch.shared_bytes;
  const Occupancy occupancy =
      OccupancyOf({record->threads, record->registers, record->shared_bytes},
                  {gpu.threads_per_multiprocessor, gpu.blocks_per_multiprocessor,
                   gpu.registers_per_multiprocessor, gpu.shared_bytes_per_multiprocessor,
                   gpu.reserved_shared_bytes_per_block});
  record->occupancy = occupancy.share;
  record->limiter = occupancy.limiter;
  const int64_t at_once = int64_t{occupancy.blocks} * gpu.multiprocessors;
  if (at_once > 0)
    record->waves = static_cast<double>(record->blocks) / static_cast<double>(at_once);
}

bool SameLaunch(const KernelRecord& a, const KernelRecord& b) {
  return a.name == b.name && a.threads == b.threads && a.blocks == b.blocks &&
         a.shared_bytes == b.shared_bytes;
}

// In the order of the launches.
std::vector<KernelRecord> LaunchedKernels(const BuiltCandidate& candidate,
                                          const std::vector<CompiledKernel>& kernels,
                                          const GpuFacts& gpu) {
  std::vector<KernelRecord> records;
  wire::DeviceImage image;
  const auto held = std::make_unique<wire::Launches>();  // too large for a stack
  wire::Launches& launches = *held;
  if (!wire::ReadDeviceImage(candidate.artifact.data(), candidate.artifact.size(), &image) ||
      candidate.launches.size() != sizeof launches)
    return records;
  memcpy(&launches, candidate.launches.data(), sizeof launches);
  for (uint32_t i = 0; i < std::min(launches.launch_count, wire::kLaunchesMax); ++i) {
    const wire::Launch& launch = launches.launches[i];
    if (launch.kernel >= image.kernel_count) continue;
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(), [&](const CompiledKernel& compiled) {
          return compiled.name == image.kernels[launch.kernel].name;
        });
    if (kernel == kernels.end()) continue;
    KernelRecord record = RecordOf(*kernel, candidate);
    AddLaunch(launch, gpu, &record);
    const auto same = std::find_if(records.begin(), records.end(), [&](const KernelRecord& other) {
      return SameLaunch(record, other);
    });
    if (same != records.end())
      ++same->launches;
    else
      records.push_back(std::move(record));
  }
  return records;
}

std::string ToText(const std::map<std::string, InstructionMix>& mixes) {
  auto document = nlohmann::json::object();
  for (const auto& [kernel, mix] : mixes)
    document[kernel] = {{"counts", mix.counts}, {"widest", mix.widest_load_bytes}};
  return document.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::optional<std::map<std::string, InstructionMix>> FromText(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  std::map<std::string, InstructionMix> mixes;
  try {
    for (const auto& [kernel, item] : document.items())
      mixes[kernel] = {item.at("counts").get<std::map<std::string, int64_t>>(),
                       item.at("widest").get<int>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return mixes;
}

// nvdisasm's run on one cubin; its listing is empty where it fails.
Result<ToolRun> RunNvdisasm(const Nvdisasm& nvdisasm, std::string_view cubin, StopToken stop) {
  SandboxRequest request;
  // The sandbox keeps 64 KiB of what is printed: the listing goes to a file.
  request.arguments = {"/bin/sh", "-c", fmt::format("exec \"$0\" -c \"$1\" >{}", kListing),
                       nvdisasm.path, kCubin};
  request.environment = CompilerEnvironment();
  request.files.push_back({kCubin, std::string(cubin), false});
  if (!nvdisasm.toolkit.starts_with("/usr/") && nvdisasm.toolkit != "/usr")
    request.binds.push_back({nvdisasm.toolkit, nvdisasm.toolkit});
  request.limits.memory_bytes = uint64_t{2} << 30;
  ASSAY_ASSIGN_OR_RETURN(ToolRun run,
                         RunToolInSandbox(std::move(request), kListing,
                                          Deadline::AfterSeconds(kListingTimeoutS), stop));
  if (!run.exit.exited || run.exit.status != 0) run.artifact.clear();
  return run;
}

}  // namespace

std::vector<KernelRecord> KernelRecordsOf(const BuiltCandidate& candidate, const GpuFacts& gpu) {
  const std::vector<CompiledKernel> kernels = CompiledKernels(candidate.artifact);
  if (candidate.source.form == CandidateForm::kDevice)
    return LaunchedKernels(candidate, kernels, gpu);
  std::map<std::string, int> named;
  for (const CompiledKernel& kernel : kernels) ++named[kernel.name];
  std::vector<KernelRecord> records;
  for (const CompiledKernel& kernel : kernels) {
    if (records.size() == kKernelsMax) break;
    records.push_back(RecordOf(kernel, candidate));
    // Variants of one name, as Triton's, have one listing's instructions among them.
    if (named[kernel.name] > 1) {
      records.back().instructions.clear();
      records.back().widest_load_bytes = 0;
    }
  }
  return records;
}

Result<std::map<std::string, InstructionMix>> Disassemble(const std::string& artifact,
                                                          StopToken stop) {
  const Span span("disassemble");
  std::map<std::string, InstructionMix> mixes;
  const auto nvdisasm = FindNvdisasm();
  const std::vector<std::string_view> cubins = FindCubins(artifact);
  if (!nvdisasm || cubins.empty()) return mixes;
  const std::string key = ArtifactCache::Key({kCacheMark, nvdisasm->path, artifact});
  if (const auto kept = Artifacts().Get(key))
    if (auto read = FromText(*kept)) return std::move(*read);
  for (size_t i = 0; i < std::min(cubins.size(), kCubinsMax); ++i) {
    const auto run = RunNvdisasm(*nvdisasm, cubins[i], stop);
    if (!run && run.error().kind == ErrorKind::kInterrupted) return std::unexpected(run.error());
    if (!run || run->artifact.empty()) return std::map<std::string, InstructionMix>();
    mixes.merge(ParseListing(run->artifact));
  }
  [[maybe_unused]] auto stored = Artifacts().Put(key, ToText(mixes));
  return mixes;
}

Result<std::string> ListMachineCode(const std::string& artifact, const Nvdisasm& nvdisasm,
                                    StopToken stop) {
  std::string listings;
  for (const std::string_view cubin : FindCubins(artifact)) {
    ASSAY_ASSIGN_OR_RETURN(const ToolRun run, RunNvdisasm(nvdisasm, cubin, stop));
    if (run.artifact.empty())
      return EnvironmentError(fmt::format(
          "{} does not list this machine code: {}. It may be older than the compiler: install the "
          "nvdisasm of the same CUDA version",
          nvdisasm.path, TrimSpace(std::string_view(run.output).substr(0, 300))));
    listings += run.artifact;
  }
  if (listings.empty()) return EnvironmentError("the compiler's output has no machine code");
  return listings;
}

}  // namespace assay
