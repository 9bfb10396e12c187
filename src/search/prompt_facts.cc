// The words of prompts on arguments, machine and target.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "model/dtype.h"
#include "problem/gradients.h"
#include "report/text.h"
#include "search/prompt.h"

namespace assay {
namespace {

// A line of a signature: "input x float32[64, 1024], which forward changes".
struct Argument {
  std::string role, name;
  std::string type;  // "float32", or of scalars "int", "float", "bool"
  int rank = -1;     // -1: a scalar
  bool changed = false;
};

Result<Argument> ReadArgument(const std::string& line) {
  Argument argument;
  const size_t name = line.find(' ');
  const size_t bracket = line.find('[');
  const size_t type = line.rfind(' ', std::min(bracket, line.size() - 1));
  if (name == std::string::npos || type == std::string::npos || type <= name)
    return UsageError(fmt::format("'{}' describes no argument", line));
  argument.role = line.substr(0, name);
  argument.name = line.substr(name + 1, type - name - 1);
  argument.type =
      line.substr(type + 1, bracket == std::string::npos ? bracket : bracket - type - 1);
  for (char& c : argument.name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (bracket == std::string::npos) return argument;
  const size_t close = line.find(']', bracket);
  const std::string_view shape = std::string_view(line).substr(bracket + 1, close - bracket - 1);
  argument.rank = shape.empty() ? 0 : 1 + static_cast<int>(std::ranges::count(shape, ','));
  argument.changed = close != std::string::npos && close + 1 < line.size();
  if (!DTypeFromName(argument.type))
    return UsageError(fmt::format("'{}' has no dtype that Assay knows", line));
  return argument;
}

std::string_view ElementType(const Argument& argument, bool on_device) {
  const DType dtype = *DTypeFromName(argument.type);
  if (on_device && dtype == DType::kFloat16) return "__half";
  if (on_device && dtype == DType::kBFloat16) return "__nv_bfloat16";
  if (on_device && dtype == DType::kInt64) return "long long";
  if (on_device && dtype == DType::kInt32) return "int";
  return CppTypeName(dtype);
}

std::string_view ScalarType(const Argument& argument) {
  if (argument.type == "int") return "int64_t";
  return argument.type == "float" ? "double" : "bool";
}

bool IsWritten(const Argument& argument) { return argument.role == "output" || argument.changed; }

std::string NativeEntry(const std::vector<Argument>& arguments) {
  std::vector<std::string> declared;
  for (const Argument& argument : arguments)
    declared.push_back(
        argument.rank < 0
            ? fmt::format("{} {}", ScalarType(argument), argument.name)
            : fmt::format("assay::Tensor<{}{}, {}> {}", IsWritten(argument) ? "" : "const ",
                          ElementType(argument, false), argument.rank, argument.name));
  return fmt::format("#include <assay/kernel.h>\nASSAY_KERNEL({}) {{ ... }}",
                     fmt::join(declared, ",\n             "));
}

std::string DeviceEntry(const std::vector<Argument>& arguments) {
  std::string text;
  for (const Argument& argument : arguments)
    text += argument.rank < 0
                ? fmt::format("// {} {}\n", ScalarType(argument), argument.name)
                : fmt::format("// {}{}* {}, rank {}\n", IsWritten(argument) ? "" : "const ",
                              ElementType(argument, true), argument.name, argument.rank);
  return text;
}

std::string PythonEntry(const std::vector<Argument>& arguments, bool gradients) {
  std::vector<std::string> names{"self"};
  for (const Argument& argument : arguments) {
    const bool is_gradient = gradients && argument.name.starts_with(kGradientInput);
    if (argument.role == "input" && !is_gradient) names.push_back(argument.name);
  }
  return fmt::format("class ModelNew(nn.Module):\n    def forward({}): ...",
                     fmt::join(names, ", "));
}

std::string Caches(const MachineProfile& profile) {
  std::vector<std::string> caches;
  for (const CacheLevel& cache : profile.caches)
    caches.push_back(fmt::format("L{} {} for {}", cache.level,
                                 FormatBytes(static_cast<double>(cache.size_bytes)),
                                 Counted(cache.cores, "core")));
  return fmt::format("{}", fmt::join(caches, ", "));
}

std::string ProcessorText(const Machine& machine, const MachineProfile& profile) {
  std::string text =
      fmt::format("{}, {}; each side may use {}.", machine.cpu, Counted(machine.cores, "core"),
                  Counted(machine.threads, "thread"));
  if (!profile.caches.empty()) text += fmt::format(" Caches: {}.", Caches(profile));
  std::vector<std::string> sets;
  for (const Ceilings& measured : profile.ceilings)
    if (sets.empty())
      for (const auto& [name, rate] : measured.float32_operations_s) sets.push_back(name);
  if (!sets.empty() && profile.cpu == machine.cpu)
    text += fmt::format(" Instruction sets: {}.", fmt::join(sets, ", "));
  const Ceilings ceilings = CeilingsFor(profile, machine.threads);
  if (ceilings.read_bytes_s > 0)
    text += fmt::format(" Measured with these threads: memory reads {}, copies {}",
                        FormatRate(ceilings.read_bytes_s, "B/s"),
                        FormatRate(ceilings.copy_bytes_s, "B/s"));
  const Rate rate = RateFor(ceilings, false);
  if (ceilings.read_bytes_s > 0 && rate.operations_s > 0)
    text += fmt::format("; float32 arithmetic {} ({})", FormatRate(rate.operations_s, "FLOP/s"),
                        rate.instructions);
  return ceilings.read_bytes_s > 0 ? text + "." : text;
}

// The machine's GPU, if there is exactly one whose ceilings are known by that name.
std::string GpuText(const Machine& machine, const MachineProfile& profile) {
  std::string text = machine.gpu + ".";
  for (const GpuCeilings& gpu : profile.gpus) {
    if (!machine.gpu.starts_with(gpu.name)) continue;
    text += fmt::format(" Measured: memory reads {}, copies {}; L2 cache {}",
                        FormatRate(BestRate(gpu.traffic, "read"), "B/s"),
                        FormatRate(BestRate(gpu.traffic, "copy"), "B/s"),
                        FormatBytes(static_cast<double>(gpu.l2_bytes)));
    for (const auto& [name, rate] : gpu.arithmetic)
      text += fmt::format("; {} {}", name, FormatRate(rate.best, "FLOP/s"));
    return text + fmt::format("; an empty launch {}.", FormatDuration(gpu.launch_ns));
  }
  return text;
}

}  // namespace

Result<std::string> EntryOf(const std::vector<std::string>& signature, std::string_view form,
                            bool gradients) {
  std::vector<Argument> arguments;
  for (const std::string& line : signature) {
    ASSAY_ASSIGN_OR_RETURN(Argument argument, ReadArgument(line));
    // Passed once, as the input.
    const bool again =
        argument.role == "output" && std::ranges::any_of(arguments, [&](const Argument& other) {
          return other.changed && other.name + "_after" == argument.name;
        });
    if (!again) arguments.push_back(std::move(argument));
  }
  if (form == "python") return PythonEntry(arguments, gradients);
  return form == "device" ? DeviceEntry(arguments) : NativeEntry(arguments);
}

std::string MachineText(const Machine& machine, const MachineProfile& profile) {
  return machine.gpu.empty() ? ProcessorText(machine, profile) : GpuText(machine, profile);
}

std::string OriginText(const Verdict& verdict) {
  const ProblemRecord& problem = verdict.problem;
  const Machine& machine = verdict.machine;
  std::string text = problem.size.empty() ? std::string() : "at size " + problem.size;
  for (const auto& [name, value] : problem.set)
    text += fmt::format("{}{} = {}", text.empty() ? "with " : ", ", name, value);
  text += fmt::format("{}on {}", text.empty() ? "" : ", ",
                      machine.gpu.empty() ? machine.cpu : machine.gpu);
  if (machine.gpu.empty()) text += ", " + Counted(machine.threads, "thread");
  if (!problem.signature.empty()) text += fmt::format(" ({})", fmt::join(problem.signature, ", "));
  return text;
}

std::string TargetText(const Verdict& verdict) {
  if (!verdict.speed) return {};
  std::string text;
  for (const auto& [name, result] : verdict.speed->baselines)
    if (result.time_ns > 0)
      text += fmt::format("{}{} takes {} a call", text.empty() ? "" : ", ", name,
                          FormatDuration(result.time_ns));
  if (text.empty()) return text;
  if (verdict.roofline && verdict.roofline->bound_ns > 0)
    text += fmt::format("; the bound by this machine's measured ceilings is {} ({})",
                        FormatDuration(verdict.roofline->bound_ns), verdict.roofline->regime);
  return text + ".";
}

}  // namespace assay
