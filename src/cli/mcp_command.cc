#include "cli/mcp_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "archive/sqlite_store.h"
#include "base/clock.h"
#include "base/secret.h"
#include "builders/native_code.h"
#include "cli/exit_code.h"
#include "cli/places.h"
#include "cli/problem_card.h"
#include "cli/recorder.h"
#include "doctor/doctor.h"
#include "machine/machine.h"
#include "mcp/attempt.h"
#include "mcp/line_reader.h"
#include "mcp/server.h"
#include "model/verdict_json.h"
#include "report/terminal.h"
#include "runner/job.h"
#include "runner/job_worker.h"
#include "toolchain/gpu_tools.h"

namespace assay {
namespace {

constexpr size_t kLineBytesMax = 8 << 20;
constexpr int kBusyWaitMs = 50, kIdleWaitMs = 500;
constexpr size_t kHandleBytes = 4, kSessionBytes = 6;

// Reads what an archive keeps; each call opens it anew, since others write to it.
class ArchiveReader {
 public:
  explicit ArchiveReader(const std::string& path) : path_(path.empty() ? DefaultArchive() : path) {}

  Result<KnownVerdict> Verdict(const std::string& id) const {
    RecordQuery query;
    query.kind = RecordKind::kVerdict;
    query.id = id;
    query.limit = 1;
    ASSAY_ASSIGN_OR_RETURN(const auto store, Open());
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store->Find(query));
    if (found.empty())
      return UsageError(fmt::format(
          "no verdict has the id {}: give one that kernel_judge, kernel_check or profile answered",
          id));
    KnownVerdict known;
    ASSAY_ASSIGN_OR_RETURN(const std::string content, store->Get(found.front().content));
    ASSAY_ASSIGN_OR_RETURN(known.verdict, VerdictFromJson(content));
    if (found.front().source.empty()) return known;
    ASSAY_ASSIGN_OR_RETURN(known.source, store->Get(found.front().source));
    return known;
  }

  // The content of the newest record on a job; empty: there is none.
  std::string Attempt(const std::string& handle) const {
    RecordQuery query;
    query.kind = RecordKind::kNote;
    query.id = handle;
    query.limit = 1;
    const auto contents = Contents(query);
    return contents && !contents->empty() ? contents->front() : "";
  }

  // The calls and seconds that a session has spent; none where no archive is yet.
  Result<Spent> SpentOf(const std::string& session) const {
    std::error_code code;
    if (!std::filesystem::exists(path_, code)) return Spent{};
    RecordQuery query;
    query.kind = RecordKind::kNote;
    query.oldest_first = true;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<std::string> contents, Contents(query));
    return SpentBy(session, contents);
  }

 private:
  Result<std::unique_ptr<SqliteStore>> Open() const { return SqliteStore::OpenToRead(path_); }
  Result<std::vector<std::string>> Contents(const RecordQuery& query) const {
    ASSAY_ASSIGN_OR_RETURN(const auto store, Open());
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store->Find(query));
    std::vector<std::string> contents;
    for (const Record& record : found) {
      ASSAY_ASSIGN_OR_RETURN(contents.emplace_back(), store->Get(record.content));
    }
    return contents;
  }

  const std::string path_;
};

Result<std::vector<Suite>> InstalledSuites() {
  std::vector<Suite> suites;
  for (const std::string& folder : SuiteFolders()) {
    ASSAY_ASSIGN_OR_RETURN(suites.emplace_back(), LoadSuite(folder));
  }
  return suites;
}

Result<std::string> ProfileReference(const McpOptions& options, const ProblemRequest& problem,
                                     StopToken stop) {
  InspectRequest request;
  request.problem = problem;
  request.python = options.asked.python;
  request.threads = options.asked.threads > 0 ? options.asked.threads : DefaultThreads();
  request.profile = true;
  request.stop = stop;
  CardStyle style;
  style.unicode = false;
  style.width = 100;
  std::string text;
  ASSAY_RETURN_IF_ERROR(WithProblemCard(
      request, [&](const ProblemCard& card) { text = RenderProblem(card, style); }));
  return text;
}

Result<std::string> FreshHandle() {
  ASSAY_ASSIGN_OR_RETURN(const std::string digits, RandomHex(kHandleBytes));
  return "job-" + digits;
}

// Whether `profile` can read counters. Errors (kUsage): $ASSAY_NCU names no program.
Result<bool> HasCounters(const std::string& device) {
  if (device != "cuda") return false;
  const auto ncu = FindNcu();
  if (ncu) return true;
  if (ncu.error().kind == ErrorKind::kUsage) return std::unexpected(ncu.error());
  Notice("profile will have no counters: " + ncu.error().message);
  return false;
}

// The parts of a server; the ports refer to it.
struct McpParts {
  const McpOptions& options;
  JobWorker& worker;
  JobFiles& files;
  Recorder& recorder;
  const ArchiveReader& archive;
};

DeskPorts PortsOf(const McpParts& parts) {
  DeskPorts ports;
  ports.suites = InstalledSuites;
  ports.resolve = [](const ProblemChoice& choice) {
    return ResolveProblem(choice, SuiteFolders());
  };
  ports.ask_worker = [&worker = parts.worker](const std::string& line, double seconds_max,
                                              const WorkLook& look, StopToken stop) {
    return worker.Judge(line, seconds_max, look, stop);
  };
  ports.read_code = [](const CandidateSource& source, StopToken stop) {
    return ReadNativeCode(source, {}, stop).value_or(NativeCode());
  };
  ports.profile_reference = [&options = parts.options](const ProblemRequest& problem,
                                                       StopToken stop) {
    return ProfileReference(options, problem, stop);
  };
  ports.write_file = [&files = parts.files](const std::string& name, const std::string& source) {
    return files.Path({std::filesystem::path(name).filename().string(), source});
  };
  ports.find_verdict = [&archive = parts.archive](const std::string& id) {
    return archive.Verdict(id);
  };
  ports.find_attempt = [&archive = parts.archive](const std::string& handle) {
    return archive.Attempt(handle);
  };
  ports.fresh_handle = FreshHandle;
  ports.record = [&recorder = parts.recorder](NewRecord record) {
    recorder.Add(std::move(record));
  };
  ports.judged = [&recorder = parts.recorder](const JudgedSource& judged, const Verdict& verdict) {
    recorder.Judged(judged, verdict);
    KeepVerdict(verdict);
  };
  ports.now_ns = MonotonicNs;
  return ports;
}

// Serves lines until stdin ends, stdout breaks, or `interrupted`.
void ServeLines(Desk& desk, const std::atomic<bool>& interrupted) {
  bool broken = false;
  McpServer server(desk, MonotonicNs, [&](const std::string& line) {
    std::fputs((line + "\n").c_str(), stdout);
    broken = broken || std::fflush(stdout) != 0 || std::ferror(stdout);
  });
  LineReader reader(STDIN_FILENO, kLineBytesMax);
  using Kind = LineReader::Piece::Kind;
  while (!interrupted && !broken) {
    const auto piece = reader.Next(server.busy() ? kBusyWaitMs : kIdleWaitMs);
    if (piece && piece->kind == Kind::kEnd) break;
    if (piece && piece->kind == Kind::kLine) server.Take(piece->line);
    if (piece && piece->kind == Kind::kTooLong) server.TakeTooLong();
    server.Tick();
  }
  server.End();
}

Result<int> Serve(const McpOptions& options, const std::atomic<bool>& interrupted) {
  std::vector<std::string> devices;
  if (!options.device.empty()) devices.push_back(options.device);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<WorkerPlace> places, PlacesOf(devices));
  ASSAY_ASSIGN_OR_RETURN(const std::string shipped, PromptTemplates::ShippedFolder());
  ASSAY_ASSIGN_OR_RETURN(const PromptTemplates templates, PromptTemplates::Load(shipped, ""));
  ASSAY_ASSIGN_OR_RETURN(JobFiles files, JobFiles::Create());
  const ArchiveReader archive(options.archive);
  Budget budget(options.budget);
  DeskTerms terms;
  terms.session = options.session;
  if (options.session.empty()) {
    ASSAY_ASSIGN_OR_RETURN(terms.session, RandomHex(kSessionBytes));
  } else {
    ASSAY_ASSIGN_OR_RETURN(const Spent spent, archive.SpentOf(options.session));
    budget.Resume(spent.calls, spent.seconds);
  }
  terms.judging = options.asked;
  terms.judging.device = places.front().device;
  ASSAY_ASSIGN_OR_RETURN(terms.counters, HasCounters(terms.judging.device));
  terms.templates = &templates;
  std::string notice;
  terms.machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  std::vector<std::string> more;
  if (options.allow_weak_sandbox) more.push_back(fmt::format("--{}", kAllowWeakSandbox));
  std::error_code code;
  WorkerProcesses workers(std::filesystem::read_symlink("/proc/self/exe", code).string(),
                          PlacesForWorkers(places, 1, UsableCpus()), more);
  JobWorker worker(workers, MonotonicNs);
  Recorder recorder(options.archive, false);
  Notice(fmt::format("mcp session {} on {}: {} calls and {:.0f} s left", terms.session,
                     places.front().Name(), budget.calls_left(), budget.seconds_left()));
  ThreadSeat seat;
  Desk desk(seat, budget, PortsOf({options, worker, files, recorder, archive}), std::move(terms));
  ServeLines(desk, interrupted);
  if (interrupted) return Fail(ErrorKind::kInterrupted, "interrupted");
  return kExitGood;
}

}  // namespace

int RunMcp(const McpOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto code = Serve(options, interrupted);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
