#include "worker/worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/hash.h"
#include "base/version.h"
#include "machine/machine.h"
#include "session/judge.h"
#include "worker_client/event.h"

namespace assay {
namespace {

using Kind = WorkerRequest::Kind;

constexpr size_t kLineBytesMax = size_t{64} << 20;
// How long an interrupt may go unseen.
constexpr int kLookMs = 100;
// How often an idle worker asks whether others wait for its memory of a device.
constexpr int kIdleMs = 500;

// Sessions are shared by requests with the same terms, of the same text of problem and opponent.
// Speedups to exceed are those of each request.
std::string SessionKey(AskedTerms asked, const SessionTerms& terms) {
  asked.threshold = AskedTerms().threshold;
  asked.bound = AskedTerms().bound;
  return Sha256Hex(fmt::format("{}\n{}\n{}\n{}", TermsText(asked), terms.problem.device,
                               terms.problem.source,
                               terms.opponent.against ? terms.opponent.against->content : ""));
}

}  // namespace

Worker::Worker(WorkerOptions options, std::function<bool(const std::string& line)> write)
    : options_(std::move(options)),
      write_(std::move(write)),
      sessions_(options_.sessions_max, options_.memory_bytes, ProcessTreeBytes) {}

void Worker::Run(int input_fd, const std::atomic<bool>& interrupted) {
  Write(ReadyLine(kAssayVersion));
  std::thread reader([&] { ReadRequests(input_fd, interrupted); });
  std::unique_ptr<Task> task;
  BuildsAhead ahead;
  while (true) {
    if (!task) {
      // Others may need now what it keeps for requests to come.
      while (!queue_.Await(kIdleMs))
        sessions_.DropIf([](const Session& s) { return s.bench().memory.IsWanted(); });
      auto request = queue_.Next();
      if (!request) break;
      task = Begin(std::move(*request));
    }
    Serve(*task, &ahead);
    task = PrepareAhead(task->key);
  }
  queue_.Stop();
  reader.join();
}

void Worker::ReadRequests(int input_fd, const std::atomic<bool>& interrupted) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    if (interrupted || (queue_.closed() && queue_.stop_flag())) return queue_.Stop();
    pollfd poll_fd{input_fd, POLLIN, 0};
    if (const int ready = ::poll(&poll_fd, 1, kLookMs); ready == 0 || (ready < 0 && errno == EINTR))
      continue;
    const ssize_t size = ::read(input_fd, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      if (!text.empty()) TakeLine(text);
      queue_.Close();
      break;
    }
    text.append(buffer, static_cast<size_t>(size));
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (end > begin && !TakeLine(text.substr(begin, end - begin))) return queue_.Close();
    text.erase(0, begin);
    if (text.size() > kLineBytesMax) {
      Write(ErrorLine("", {ErrorKind::kUsage, "a request's line is over 64 MiB"}));
      return queue_.Close();
    }
  }
  // The requests are all there. An interrupt still ends the one in hand, and so does the end of a
  // client, which leaves nobody to read of a candidate that hangs.
  while (!queue_.done()) {
    pollfd events{options_.events_fd, 0, 0};
    ::poll(&events, 1, kLookMs);
    if (interrupted || (events.revents & POLLERR) != 0) return queue_.Stop();
  }
}

bool Worker::TakeLine(const std::string& line) {
  std::string id;
  auto request = ParseWorkerRequest(line, &id);
  if (!request) {
    Write(ErrorLine(id, request.error()));
    return true;
  }
  if (request->kind == Kind::kShutdown) return false;
  if (request->kind == Kind::kCancel) {
    if (queue_.Cancel(request->cancels))
      Write(ErrorLine(request->cancels, {ErrorKind::kInterrupted, "cancelled"}));
    return true;
  }
  if (!queue_.Push(std::move(*request)))
    Write(ErrorLine(id, {ErrorKind::kUsage, "too many requests wait: send fewer at a time"}));
  return true;
}

Result<SessionTerms> Worker::TermsOf(const WorkerRequest& request) const {
  AskedTerms asked = request.terms;
  if (asked.device.empty()) asked.device = options_.device;
  auto terms = ResolveTerms(asked, request.candidates);
  if (!terms) return terms;
  if (!options_.device.empty() && terms->problem.device != options_.device)
    return UsageError(fmt::format("this worker judges on {} alone", options_.device));
  terms->machine = options_.machine;
  terms->sharers = options_.sharers;
  terms->forks_hosts = true;
  return terms;
}

std::unique_ptr<Worker::Task> Worker::Begin(WorkerRequest request) const {
  auto terms = TermsOf(request);
  auto task = std::make_unique<Task>(Task{std::move(request), std::move(terms), "", nullptr});
  if (!task->terms) return task;
  task->key = SessionKey(task->request.terms, *task->terms);
  if (task->request.kind == Kind::kDescribe) return task;
  std::vector<const CandidateSource*> sources;
  for (const CandidateSource& source : task->request.candidates) sources.push_back(&source);
  task->builds = std::make_unique<CandidateBuilds>(std::move(sources), task->terms->limits,
                                                   StopToken(queue_.stop_flag()));
  return task;
}

Worker::BuildsAhead Worker::BeginBuildsAhead() const {
  // Cores that are set apart for measurements are not used.
  if (MeasuringCpus() == UsableCpus()) return {};
  const auto request = queue_.Peek();
  if (!request || request->kind == Kind::kDescribe) return {};
  const auto terms = TermsOf(*request);
  if (!terms) return {};
  return {request->id, BeginImportBuilds(*terms, request->candidates, queue_.stop_flag())};
}

void Worker::Serve(Task& task, BuildsAhead* ahead) {
  const std::string& id = task.request.id;
  if (!task.terms) return Write(ErrorLine(id, task.terms.error()));
  if (const auto judged = Judge(task, ahead); !judged) {
    // Whatever failed may have left hosts in the middle of something.
    const ErrorKind kind = judged.error().kind;
    if (kind != ErrorKind::kUsage && kind != ErrorKind::kUnjudged) sessions_.Drop(task.key);
    const StopToken stop(queue_.stop_flag());
    return Write(ErrorLine(id, ExplainError(judged.error(), task.terms->problem, stop)));
  }
  Write(DoneLine(id));
  sessions_.Trim();
}

Result<void> Worker::Judge(Task& task, BuildsAhead* ahead) {
  const WorkerRequest& request = task.request;
  const SessionTerms& terms = *task.terms;
  size_t next = 0;
  JudgeEvents events;
  events.progress = [&](const ProgressEvent& event) { Write(ProgressLine(request.id, event)); };
  events.verdict = [&](const Verdict& verdict) {
    Write(VerdictLine(request.id, next++, WithFileNames(verdict, terms.problem)));
  };
  events.unjudged = [&](const Error& error) { Write(UnjudgedLine(request.id, next++, error)); };
  events.known = [&](const std::string& artifact) {
    Write(KnownLine(request.id, next++, artifact));
  };
  MemoryTerms memory;
  memory.on_wait = [&] { sessions_.DropIf([](const Session&) { return true; }); };
  const auto opened = sessions_.Get(task.key, [&] {
    return Session::Open(terms, StopToken(queue_.stop_flag()), events, task.builds.get(), memory);
  });
  if (!opened) {
    TellRefused(opened.error(), request.candidates.size(), events);
    return std::unexpected(opened.error());
  }
  Session* const session = *opened;
  // Others compile by themselves from here on.
  if (ahead->builds && ahead->id == request.id) ahead->builds->Settle();
  *ahead = {};
  events.built = [&] { *ahead = BeginBuildsAhead(); };
  if (!task.builds) {
    Write(DescriptionLine(request.id, terms.problem, session->description()));
    return {};
  }
  const bool is_open = session->is_open();
  auto judged = session->JudgeAll(*task.builds,
                                  {.correctness_only = request.kind == Kind::kCheck,
                                   .bar = request.terms.bar(),
                                   .known = request.known},
                                  events);
  if (!is_open) sessions_.Drop(task.key);
  return judged;
}

std::unique_ptr<Worker::Task> Worker::PrepareAhead(const std::string& key) {
  std::unique_ptr<Task> next;
  const auto look = [&] {
    if (next) return;
    if (auto request = queue_.TakeWaiting()) next = Begin(std::move(*request));
  };
  look();
  const auto open = [] { return Fail(ErrorKind::kUsage, "it was closed"); };
  const auto session = sessions_.Get(key, open);
  if (!session || (next ? next->key != key : queue_.closed())) return next;
  // What fails now fails again where somebody waits for it, and is told then.
  if (!(*session)->PrepareNext(look)) sessions_.Drop(key);
  return next;
}

void Worker::Write(const std::string& line) {
  const std::lock_guard lock(writing_);
  if (!write_(line + "\n")) queue_.Stop();
}

}  // namespace assay
