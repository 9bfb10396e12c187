#include "cluster/slurm_pilots.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/trimmed.h"
#include "report/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogBytesMax = size_t{1} << 20;
constexpr size_t kLastBytes = 600;

}  // namespace

SlurmPilots::SlurmPilots(SlurmPilotTerms terms, Slurm& slurm, std::function<int64_t()> now_ns)
    : terms_(std::move(terms)), slurm_(slurm), now_ns_(std::move(now_ns)) {}

bool SlurmPilots::IsSilent(const SlurmJob& job, std::span<const KnownWorker> workers) {
  if (job.state != "RUNNING") {
    runs_since_.erase(job.id);
    return false;
  }
  const double since_s = runs_since_.emplace(job.id, Now()).first->second;
  if (Now() - since_s < terms_.silent_s) return false;
  return std::ranges::none_of(workers, [&](const KnownWorker& worker) {
    return worker.facts.job == job.id && worker.silent_s < terms_.silent_s;
  });
}

std::string SlurmPilots::LastWords() const {
  std::error_code code;
  fs::path newest;
  fs::file_time_type time;
  for (fs::directory_iterator each(terms_.logs, code), end; !code && each != end;
       each.increment(code)) {
    std::error_code gone;
    const auto written = each->last_write_time(gone);
    if (gone || each->path().extension() != ".log") continue;
    if (newest.empty() || written > time) {
      newest = each->path();
      time = written;
    }
  }
  if (newest.empty()) return "";
  const auto text = ReadFile(newest, kLogBytesMax);
  if (!text) return "";
  const std::string end(
      Trimmed(text->substr(text->size() > kLastBytes ? text->size() - kLastBytes : 0)));
  return fmt::format("{} ends with:\n{}", newest.string(), end);
}

Result<std::vector<std::string>> SlurmPilots::Tend(const PilotDemand& demand,
                                                   std::span<const KnownWorker> workers) {
  std::vector<std::string> lines;
  if (demand.works_ended > works_ended_) submitted_ = 0;
  works_ended_ = demand.works_ended;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, slurm_.Jobs());
  int64_t alive = 0;
  std::vector<std::string> silent;
  for (const SlurmJob& job : jobs) {
    if (!job.IsAlive() || cancelled_.contains(job.id)) continue;
    if (IsSilent(job, workers)) {
      silent.push_back(job.id);
      lines.push_back(fmt::format(
          "Slurm job {} on {} runs, and its worker is silent: it is replaced", job.id, job.node));
      continue;
    }
    ++alive;
    if (job.state == "PENDING" && !job.reason.empty() && job.reason != "None" &&
        reasons_.insert(job.reason).second)
      lines.push_back(fmt::format("Slurm job {} waits: {}", job.id, job.reason));
  }
  if (!silent.empty()) {
    ASSAY_RETURN_IF_ERROR(slurm_.Cancel(silent));
    cancelled_.insert(silent.begin(), silent.end());
  }
  const int64_t missing = std::min<int64_t>(terms_.nodes, demand.works_left) - alive;
  if (missing <= 0) return lines;
  if (submitted_ + missing > int64_t{terms_.rounds_max} * terms_.nodes) {
    const std::string words = LastWords();
    return UsageError(fmt::format("{} were started by Slurm and ended without a verdict; {}",
                                  Counted(submitted_, "worker"),
                                  words.empty() ? "they left no log in " + terms_.logs : words));
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string id,
                         slurm_.Submit(static_cast<int>(missing), terms_.script));
  submitted_ += missing;
  lines.push_back(fmt::format("Slurm job {}: {}", id, Counted(missing, "worker")));
  return lines;
}

void SlurmPilots::End() { (void)slurm_.CancelAll(); }

}  // namespace assay
