#include "cluster/job_conductor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "cluster/work_end.h"
#include "runner/job.h"
#include "serve/given_job.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kRunDigits = 12, kFileBytesMax = size_t{16} << 20;
constexpr int64_t kTellMs = 20'000;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string KeyOf(int64_t job) { return fmt::format("job-{}", job); }

// The request of a work (work_request.h), which has the form of a job that is given to a runner.
Result<std::string> RequestOf(const GivenJob& given, const std::string& version) {
  const Json body = Json::parse(given.body, nullptr, false);
  if (!body.is_object() || !body.contains("job"))
    return UsageError("a job that is given has no JSON");
  Json request{{"assay", version}};
  request.update(body["job"]);
  return Dump(request);
}

}  // namespace

JobConductor::JobConductor(Hall& hall, WorkQueue& queue, Pilots* pilots, JobConductorTerms terms,
                           SupervisorEvents events, Changed changed, std::function<Instant()> now)
    : hall_(hall),
      queue_(queue),
      terms_(std::move(terms)),
      changed_(std::move(changed)),
      now_(std::move(now)),
      supervisor_(queue, pilots, terms_.supervisor, std::move(events)) {}

std::string JobConductor::RunOf(int64_t job, const Held& held) const {
  // The queue may be read by those who must not end the job.
  return fmt::format("{}-{}-{}", terms_.run, job, Sha256Hex(held.lease).substr(0, kRunDigits));
}

fs::path JobConductor::FileOf(int64_t job) const {
  return terms_.folder / fmt::format("{}.json", job);
}

Result<void> JobConductor::Open() {
  std::error_code code;
  fs::create_directories(terms_.folder, code);
  fs::permissions(terms_.folder, fs::perms::owner_all, code);
  if (code)
    return EnvironmentError(
        fmt::format("cannot make {}: {}", terms_.folder.string(), code.message()));
  for (fs::directory_iterator each(terms_.folder, code), end; !code && each != end;
       each.increment(code)) {
    if (each->path().extension() != ".json") continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(each->path(), kFileBytesMax));
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object())
      return EnvironmentError(fmt::format("{} is damaged: remove it, and its job is judged anew",
                                          each->path().string()));
    Held held;
    held.lease = json.value("lease", "");
    held.request = json.value("request", "");
    held_[json.value("job", int64_t{0})] = std::move(held);
  }
  return {};
}

Result<void> JobConductor::Hold(const GivenJob& given) {
  Held held;
  held.lease = given.lease;
  held.renewed_ms = now_().steady_ms;
  ASSAY_ASSIGN_OR_RETURN(held.request, RequestOf(given, terms_.version));
  held_[given.id] = held;
  return WriteFileAtomically(
      FileOf(given.id),
      Dump({{"job", given.id}, {"lease", held.lease}, {"request", held.request}}));
}

void JobConductor::Drop(int64_t job) {
  const std::string run = RunOf(job, held_.at(job));
  held_.erase(job);
  // The file goes first: a process that found it without its work would have the job judged anew.
  std::error_code code;
  fs::remove(FileOf(job), code);
  queue_.Forget(run);
}

// Works that the queue knows stay as they are.
Result<void> JobConductor::QueueWorks() {
  for (auto& [job, held] : held_) {
    if (held.is_queued) continue;
    const Json request = Json::parse(held.request, nullptr, false);
    NewWork work;
    work.run = RunOf(job, held);
    work.key = KeyOf(job);
    work.group = request.is_object() ? Dump(request.value("problem", Json())) : "";
    work.device = terms_.device;
    work.request = held.request;
    ASSAY_RETURN_IF_ERROR(queue_.Add(std::vector{work}));
    held.is_queued = true;
  }
  return {};
}

Result<void> JobConductor::EndWithError(int64_t job, const Held& held, const RunnerError& error) {
  const std::scoped_lock lock(hall_.mutex);
  ASSAY_ASSIGN_OR_RETURN(const Ending ending,
                         hall_.leases().EndWithError(job, held.lease, error, now_()));
  (void)ending;  // a lease that is over needs no end
  changed_(job);
  return {};
}

Result<bool> JobConductor::EndIfJudged(int64_t job, const Held& held) {
  ASSAY_ASSIGN_OR_RETURN(const auto ended, queue_.Ended(RunOf(job, held), 0, 1));
  if (ended.empty()) return false;
  ++ended_;
  if (ended.front().state != WorkState::kJudged) {
    const Error error = ErrorOfEnd(ended.front());
    const std::string kind(JobErrorKind(error.kind));
    ASSAY_RETURN_IF_ERROR(EndWithError(job, held, {kind, error.message}));
    return true;
  }
  Result<Ending> ending = Ending::kCounted;
  {
    const std::scoped_lock lock(hall_.mutex);
    ending = hall_.End(job, held.lease, ended.front().end.verdict, now_());
    if (ending) changed_(job);
  }
  if (ending) return true;
  // The end stays in the queue while the server is in trouble, and is read again.
  if (ending.error().kind != ErrorKind::kUsage) return std::unexpected(ending.error());
  ASSAY_RETURN_IF_ERROR(EndWithError(job, held, {"environment", ending.error().message}));
  return true;
}

Result<void> JobConductor::EndJudged() {
  for (auto each = held_.begin(); each != held_.end();) {
    const auto& [job, held] = *each++;
    if (!held.is_queued) continue;
    ASSAY_ASSIGN_OR_RETURN(const bool ended, EndIfJudged(job, held));
    if (ended) Drop(job);
  }
  return {};
}

Result<void> JobConductor::Renew() {
  for (auto each = held_.begin(); each != held_.end();) {
    const int64_t job = each->first;
    Held& held = (each++)->second;
    std::string event;
    for (const KnownWorker& worker : supervisor_.workers())
      if (!held.is_told && (worker.doing + " ").contains(KeyOf(job) + " "))
        event = Dump({{"event", "progress"},
                      {"stage", "judging"},
                      {"text", fmt::format("on {}", worker.facts.node)}});
    const Instant now = now_();
    if (event.empty() && now.steady_ms - held.renewed_ms < terms_.renew_ms) continue;
    bool goes_on = false;
    {
      const std::scoped_lock lock(hall_.mutex);
      ASSAY_ASSIGN_OR_RETURN(goes_on, hall_.leases().Renew(job, held.lease, event, now));
      if (!event.empty()) changed_(job);
    }
    held.renewed_ms = now.steady_ms;
    held.is_told = held.is_told || !event.empty();
    if (goes_on) continue;
    ASSAY_RETURN_IF_ERROR(queue_.Cancel(RunOf(job, held)));
    Drop(job);
  }
  return {};
}

Result<void> JobConductor::Tend() {
  int64_t waiting = 0;
  {
    const std::scoped_lock lock(hall_.mutex);
    ASSAY_ASSIGN_OR_RETURN(waiting, hall_.leases().Waiting(terms_.device));
  }
  if (failed_since_ms_ > 0 && now_().steady_ms - failed_since_ms_ > terms_.forgive_ms) {
    supervisor_.Forgive();
    failed_since_ms_ = 0;
  }
  auto tended = supervisor_.Tend({waiting + std::ssize(held_), ended_});
  if (!tended && tended.error().kind == ErrorKind::kUsage && failed_since_ms_ == 0)
    failed_since_ms_ = now_().steady_ms;
  return tended;
}

KnownRunner JobConductor::Facts() const {
  KnownRunner facts;
  facts.name = terms_.runner;
  facts.device = terms_.device;
  facts.version = terms_.version;
  return facts;
}

Result<void> JobConductor::TellItIsThere() {
  const Instant now = now_();
  if (told_ms_ >= 0 && now.steady_ms - told_ms_ < kTellMs) return {};
  const std::scoped_lock lock(hall_.mutex);
  ASSAY_ASSIGN_OR_RETURN(const Account own, hall_.accounts().ServerAccount(now));
  ASSAY_RETURN_IF_ERROR(hall_.leases().Meet(own, Facts(), true, now));
  told_ms_ = now.steady_ms;
  return {};
}

Result<void> JobConductor::TakeJobs() {
  while (std::ssize(held_) < supervisor_.Alive()) {
    std::optional<GivenJob> given;
    {
      const std::scoped_lock lock(hall_.mutex);
      const Instant now = now_();
      ASSAY_ASSIGN_OR_RETURN(const Account own, hall_.accounts().ServerAccount(now));
      ASSAY_ASSIGN_OR_RETURN(given, GiveJob(hall_, own, Facts(), now, changed_));
    }
    if (!given) return {};
    ASSAY_RETURN_IF_ERROR(Hold(*given));
    ASSAY_RETURN_IF_ERROR(QueueWorks());
  }
  return {};
}

Result<void> JobConductor::Look() {
  ASSAY_RETURN_IF_ERROR(QueueWorks());
  ASSAY_RETURN_IF_ERROR(EndJudged());
  ASSAY_RETURN_IF_ERROR(Renew());
  const auto tended = Tend();
  ASSAY_RETURN_IF_ERROR(TellItIsThere());
  ASSAY_RETURN_IF_ERROR(TakeJobs());
  return tended;
}

void JobConductor::End() {
  supervisor_.End();
  (void)EndJudged();
  while (!held_.empty()) {
    const int64_t job = held_.begin()->first;
    const Held held = held_.begin()->second;
    (void)queue_.Cancel(RunOf(job, held));
    const bool is_back = EndWithError(job, held, {"interrupted", "the server ends"}).has_value();
    // Otherwise the next process finds its file.
    is_back ? Drop(job) : static_cast<void>(held_.erase(job));
  }
}

}  // namespace assay
