#include "report/kernel_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "report/text.h"

namespace assay {
namespace {

constexpr size_t kKindsMax = 4;

// Names the things that a count such as "global_load" counts, for people. Keeps float32 and the
// like.
std::string KindText(const std::string& kind, int64_t count, int widest_load_bytes) {
  static const std::map<std::string, const char*> kNouns = {
      {"async_copy", "asynchronous"}, {"atomic", "atomic"},        {"barrier", "barrier"},
      {"conversion", "converting"},   {"global_load", "loading"},  {"global_store", "storing"},
      {"local", "local memory"},      {"shared", "shared memory"}, {"special", "special function"}};
  const auto noun = kNouns.find(kind);
  std::string text = fmt::format("{} {}", count, noun == kNouns.end() ? kind : noun->second);
  if (kind == "global_load" && widest_load_bytes > 0)
    text += fmt::format(" (up to {} bytes a thread)", widest_load_bytes);
  return text;
}

// The most frequent kinds of those that tell something; the rest is addressing and control.
std::string Instructions(const KernelRecord& kernel) {
  std::vector<std::pair<std::string, int64_t>> kinds;
  for (const auto& [kind, count] : kernel.instructions)
    if (kind != "integer" && kind != "branch" && kind != "other") kinds.emplace_back(kind, count);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  kinds.resize(std::min(kinds.size(), kKindsMax));
  std::vector<std::string> texts;
  for (const auto& [kind, count] : kinds)
    texts.push_back(KindText(kind, count, kernel.widest_load_bytes));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> KernelFacts(const KernelRecord& kernel) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::string takes = fmt::format("{} a thread", Counted(kernel.registers, "register"));
  if (kernel.stack_bytes > 0)
    takes +=
        fmt::format(", {} of local memory", FormatBytes(static_cast<double>(kernel.stack_bytes)));
  if (kernel.shared_bytes > 0)
    takes += fmt::format("; {} of shared memory a block",
                         FormatBytes(static_cast<double>(kernel.shared_bytes)));
  lines.emplace_back("takes", takes);
  if (kernel.launches > 0) {
    std::string launch = fmt::format("{} of {}, {:.3g} {}", Counted(kernel.blocks, "block"),
                                     Counted(kernel.threads, "thread"), kernel.waves,
                                     kernel.waves == 1 ? "wave" : "waves");
    if (kernel.launches > 1) launch = fmt::format("{} times {}", kernel.launches, launch);
    lines.emplace_back("launched", launch);
    std::string occupancy = fmt::format("{:.0f}%", 100 * kernel.occupancy);
    if (kernel.occupancy < 1) occupancy += ", limited by " + kernel.limiter;
    lines.emplace_back("occupancy", occupancy);
  }
  if (const std::string instructions = Instructions(kernel); !instructions.empty())
    lines.emplace_back("instructions", instructions);
  return lines;
}

namespace {

// "DRAM 34%, caches 41%"; figures that are not there are left out.
std::string Percents(
    const KernelProfile& kernel,
    std::initializer_list<std::pair<const char*, std::optional<double> KernelProfile::*>> figures) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : figures)
    if (kernel.*value) texts.push_back(fmt::format("{} {:.0f}%", name, *(kernel.*value)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string Waiting(const KernelProfile& kernel) {
  std::vector<std::pair<double, std::string>> stalls;
  for (const auto& [reason, percent] : kernel.stalls) stalls.emplace_back(percent, reason);
  std::sort(stalls.rbegin(), stalls.rend());
  std::vector<std::string> texts;
  for (const auto& [percent, reason] : stalls)
    texts.push_back(fmt::format("{} {:.0f}%", reason, percent));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ProfileFacts(const KernelProfile& kernel) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&](const char* label, std::string text) {
    if (!text.empty()) lines.emplace_back(label, std::move(text));
  };
  add("cycles", fmt::format("{:.0f}% of the call's, in {} launch{}", 100 * kernel.cycles_share,
                            kernel.launches, kernel.launches == 1 ? "" : "es"));
  add("of peak", Percents(kernel, {{"DRAM", &KernelProfile::dram_percent},
                                   {"memory in all", &KernelProfile::memory_percent},
                                   {"multiprocessors", &KernelProfile::sm_percent},
                                   {"matrix units", &KernelProfile::tensor_percent}}));
  std::string memory =
      kernel.dram_bytes ? FormatBytes(*kernel.dram_bytes) + " to and from DRAM" : std::string();
  const std::string rest = Percents(kernel, {{"L2 hits", &KernelProfile::l2_hit_percent},
                                             {"loads use", &KernelProfile::load_used_percent},
                                             {"stores use", &KernelProfile::store_used_percent},
                                             {"bank conflicts", &KernelProfile::conflict_percent}});
  if (!memory.empty() && !rest.empty()) memory += ", ";
  add("memory", memory + rest);
  add("warps", Percents(kernel, {{"active", &KernelProfile::warps_active_percent}}));
  add("waiting", Waiting(kernel));
  return lines;
}

}  // namespace assay
