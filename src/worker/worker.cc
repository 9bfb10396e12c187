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

namespace assay {
namespace {

using Kind = WorkerRequest::Kind;

constexpr size_t kLineBytesMax = size_t{64} << 20;
// How long an interrupt may go unseen.
constexpr int kLookMs = 100;

// Sessions are shared by requests with the same terms, of the same text of problem and opponent.
std::string SessionKey(const WorkerRequest& request, const SessionTerms& terms) {
  return Sha256Hex(fmt::format("{}\n{}\n{}\n{}", request.terms_text, terms.problem.device,
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
  while (const auto request = queue_.Next()) Serve(*request);
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
  // The requests are all there; an interrupt still ends the one in hand.
  while (!queue_.done()) {
    if (interrupted) return queue_.Stop();
    ::poll(nullptr, 0, kLookMs);
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

void Worker::Serve(const WorkerRequest& request) {
  AskedTerms asked = request.terms;
  if (asked.device.empty()) asked.device = options_.device;
  auto terms = ResolveTerms(asked, request.candidates);
  if (terms && !options_.device.empty() && terms->problem.device != options_.device)
    terms = UsageError(fmt::format("this worker judges on {} alone", options_.device));
  if (!terms) return Write(ErrorLine(request.id, terms.error()));
  terms->machine = options_.machine;
  const std::string key = SessionKey(request, *terms);
  const auto judged = Judge(request, *terms, key);
  if (!judged) {
    // Whatever failed may have left hosts in the middle of something.
    if (judged.error().kind != ErrorKind::kUsage) sessions_.Drop(key);
    const StopToken stop(queue_.stop_flag());
    return Write(ErrorLine(request.id, ExplainError(judged.error(), terms->problem, stop)));
  }
  Write(DoneLine(request.id));
  sessions_.Trim();
  PrepareAhead(key);
}

Result<void> Worker::Judge(const WorkerRequest& request, const SessionTerms& terms,
                           const std::string& key) {
  size_t next = 0;
  JudgeEvents events;
  events.progress = [&](const ProgressEvent& event) { Write(ProgressLine(request.id, event)); };
  events.verdict = [&](const Verdict& verdict) {
    Write(VerdictLine(request.id, next++, WithFileNames(verdict, terms.problem)));
  };
  ASSAY_ASSIGN_OR_RETURN(Session * session, sessions_.Get(key, [&] {
    return Session::Open(terms, StopToken(queue_.stop_flag()), events);
  }));
  if (request.kind == Kind::kDescribe) {
    Write(DescriptionLine(request.id, terms.problem, session->description()));
    return {};
  }
  return session->JudgeAll(request.candidates, {.correctness_only = request.kind == Kind::kCheck},
                           events);
}

void Worker::PrepareAhead(const std::string& key) {
  if (queue_.HasWaiting()) return;
  const auto open = [] { return Fail(ErrorKind::kUsage, "it was closed"); };
  const auto session = sessions_.Get(key, open);
  // What fails now fails again where somebody waits for it, and is told then.
  if (session && !(*session)->PrepareNext()) sessions_.Drop(key);
}

void Worker::Write(const std::string& line) {
  const std::lock_guard lock(writing_);
  if (!write_(line + "\n")) queue_.Stop();
}

}  // namespace assay
