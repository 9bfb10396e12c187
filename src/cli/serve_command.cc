#include "cli/serve_command.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/local_runners.h"
#include "cli/places.h"
#include "cli/serve_cluster.h"
#include "doctor/doctor.h"
#include "sandbox/sandbox.h"
#include "serve/class_room.h"
#include "serve/examples.h"
#include "serve/hall.h"
#include "serve/private_file.h"
#include "web/all_routes.h"
#include "web/assets.h"
#include "web/site.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConnectionsMax = 2000, kHandlers = 4;
constexpr int kTendMs = 500, kRunnersEndMs = 15'000;
constexpr size_t kTokenBytesMax = 1024, kMachineBytesMax = 1 << 20;

// Many readers of events have a connection each.
void AllowManyConnections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// The token of an account in a file of the folder's: made where there is none that stands.
Result<std::string> TokenFile(Hall& hall, const std::string& name, const Account& account) {
  const fs::path path = fs::path(hall.database().folder()) / name;
  Accounts accounts = hall.accounts();
  if (const auto text = ReadFile(path, kTokenBytesMax)) {
    const std::string token = text->substr(0, text->find_first_of(" \r\n"));
    ASSAY_ASSIGN_OR_RETURN(const auto known, accounts.OfAccess(token, InstantNow()));
    if (known && known->id == account.id) return path.string();
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string token, accounts.IssueAccess(account.id, InstantNow()));
  ASSAY_RETURN_IF_ERROR(WritePrivateFile(path.string(), token + "\n"));
  return path.string();
}

Result<Account> MentorOf(Hall& hall) {
  Accounts accounts = hall.accounts();
  ASSAY_ASSIGN_OR_RETURN(const auto known, accounts.FindByName("mentor"));
  if (known) return *known;
  return accounts.Make("mentor", Role::kMentor, 0, InstantNow());
}

// Wakes streams once the server is there.
class Bell {
 public:
  WakeFunction Ring() {
    return [this](const std::string& topic) {
      if (server_ != nullptr) server_->Wake(topic);
    };
  }
  void Connect(HttpServer* server) { server_ = server; }

 private:
  HttpServer* server_ = nullptr;
};

// A server's own work: leases that end, verdicts that were not archived, its own runners.
// Its own thread, so that runners, which end with their parent thread, live as long.
class Caretaker {
 public:
  Caretaker(Hall& hall, WakeFunction wake, LocalRunners& runners,
            const std::atomic<bool>& interrupted)
      : hall_(hall), wake_(std::move(wake)), runners_(runners), interrupted_(interrupted) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Caretaker() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // True once the runners have ended after an interrupt, or had their time to.
  bool runners_ended() const { return runners_ended_; }

 private:
  void Run() {
    std::optional<int64_t> ending_since;
    std::unique_lock lock(mutex_);
    while (!over_) {
      const int64_t now_ms = MonotonicNs() / 1'000'000;
      if (interrupted_ && !ending_since) {
        runners_.Interrupt();
        ending_since = now_ms;
      }
      runners_.Tend(now_ms);
      if (ending_since && (runners_.AllEnded() || now_ms - *ending_since > kRunnersEndMs))
        runners_ended_ = true;
      Tend();
      changed_.wait_for(lock, std::chrono::milliseconds(ending_since ? 50 : kTendMs));
    }
  }
  void Tend() {
    const std::scoped_lock lock(hall_.mutex);
    const auto expired = hall_.leases().Expire(InstantNow());
    if (!expired) return Tell(expired.error());
    for (const int64_t job : *expired) wake_(JobTopic(job));
    if (!expired->empty()) wake_(kQueueTopic);
    if (const auto settled = hall_.Settle(); !settled) return Tell(settled.error());
    const auto finals = TendClasses(hall_, InstantNow());
    if (!finals) return Tell(finals.error());
    if (*finals > 0) wake_(kQueueTopic);
    told_.clear();
  }
  // Each trouble once, until it is over or another one comes.
  void Tell(const Error& error) {
    if (error.message == told_) return;
    told_ = error.message;
    Notice(error.message);
  }

  Hall& hall_;
  const WakeFunction wake_;
  LocalRunners& runners_;
  const std::atomic<bool>& interrupted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::string told_;
  std::atomic<bool> runners_ended_ = false;
  std::thread thread_;
};

Result<Catalogue> CatalogueFor(const std::string& folder) {
  return Catalogue::Load(SuiteFolders(), folder + "/problems");
}

// Example results in a fresh folder.
Result<void> FillDemo(const std::string& folder) {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(const Examples examples,
                         ReadExamples({support + "/examples", support + "/kernels"}));
  ASSAY_ASSIGN_OR_RETURN(const TarLibrary tars, TarLibrary::Open(support + "/tar.so"));
  return FillWithExamples(examples, tars, folder);
}

// The machine that judged the examples.
Result<MachineProfile> ExampleMachine() {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(support + "/examples/machine.json", kMachineBytesMax));
  return MachineProfileFromJson(text);
}

Result<ClassDesk> DeskOfClasses() {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(TarLibrary tars, TarLibrary::Open(support + "/tar.so"));
  return ClassDesk{std::move(tars), support + "/certificate.so"};
}

ServerHandlers HandlersOf(Site& site, const Caretaker& caretaker, const ServeCluster* cluster) {
  ServerHandlers handlers;
  handlers.refuse = [&](const ServedRequest& request) { return site.Refuse(request); };
  handlers.answer = [&](const ServedRequest& request) { return site.Answer(request); };
  handlers.fault = [&](int status, const std::string& why) { return site.Fault(status, why); };
  handlers.over = [&caretaker, cluster] {
    return caretaker.runners_ended() && (cluster == nullptr || cluster->ended());
  };
  return handlers;
}

Result<int> ServeHall(const ServeOptions& options, const std::string& folder,
                      const std::atomic<bool>& interrupted) {
  ASSAY_ASSIGN_OR_RETURN(Catalogue catalogue, CatalogueFor(folder));
  HallOptions terms;
  terms.folder = folder;
  terms.archive = options.archive;
  terms.queue.queued_max = options.queued;
  terms.queue.made_a_day_max = options.quota;
  terms.verdict_seconds = options.verdict_seconds;
  terms.spot_checks = options.spot_checks / 100;
  std::string notice;
  if (options.demo) {
    ASSAY_ASSIGN_OR_RETURN(terms.machine, ExampleMachine());
  } else {
    terms.machine = LoadMachineProfile(&notice);
  }
  if (!notice.empty()) Notice(notice);
  ASSAY_ASSIGN_OR_RETURN(const auto hall, Hall::Open(terms, std::move(catalogue)));
  ASSAY_ASSIGN_OR_RETURN(const Account mentor, MentorOf(*hall));
  ASSAY_ASSIGN_OR_RETURN(const std::string token_file, TokenFile(*hall, "mentor-token", mentor));
  ASSAY_ASSIGN_OR_RETURN(const Account own, hall->accounts().ServerAccount(InstantNow()));
  ASSAY_ASSIGN_OR_RETURN(const std::string runner_token, TokenFile(*hall, "runner-token", own));

  Bell bell;
  PageParts parts;
  parts.wake = bell.Ring();
  parts.example = options.demo;
  if (const auto support = SupportFolder()) parts.ladders = RecordedLadders(*support + "/kernels");
  ASSAY_ASSIGN_OR_RETURN(const ClassDesk desk, DeskOfClasses());
  UseRulesOfClasses(*hall);
  const std::vector<Route> routes = AllRoutes(parts, desk);
  SiteOptions site_options;
  site_options.behind_proxy = options.behind_proxy;
  site_options.is_public = options.is_public || options.demo;
  site_options.security_policy = PageSecurityPolicy();
  ServerLimits limits;
  limits.connections_max = kConnectionsMax;
  limits.handlers = kHandlers;
  limits.body_bytes_max = kBodyBytesMax;
  for (const Route& route : routes)
    limits.body_bytes_max = std::max(limits.body_bytes_max, route.body_bytes_max);
  ASSAY_ASSIGN_OR_RETURN(const auto server, HttpServer::Listen(options.port, limits));
  bell.Connect(server.get());
  site_options.port = server->port();
  Site site(*hall, routes, site_options,
            [&](int status, const std::string& message, const WebRequest* request) {
              return ErrorPageOf(parts, status, message, request);
            });
  const std::string url = fmt::format("http://127.0.0.1:{}", server->port());
  std::error_code code;
  std::vector<std::string> more;
  if (options.allow_weak_sandbox) more.push_back(fmt::format("--{}", kAllowWeakSandbox));
  LocalRunners runners(fs::read_symlink("/proc/self/exe", code).string(), url, runner_token,
                       options.devices, more);
  const Caretaker caretaker(*hall, parts.wake, runners, interrupted);
  std::unique_ptr<ServeCluster> cluster;
  if (options.cluster.asked()) {
    const auto changed = [&parts](int64_t job) {
      parts.wake(JobTopic(job));
      parts.wake(kQueueTopic);
    };
    ASSAY_ASSIGN_OR_RETURN(
        cluster, ServeCluster::Open(options.cluster, folder, options.allow_weak_sandbox, *hall,
                                    changed, interrupted));
  }
  std::fputs((url + "\n").c_str(), stdout);
  std::fflush(stdout);
  Notice(fmt::format("serves {} from {}; the mentor's token is in {}", url, folder, token_file));
  server->Serve(HandlersOf(site, caretaker, cluster.get()));
  return Fail(ErrorKind::kInterrupted, "interrupted");
}

Result<int> Serve(const ServeOptions& options, const std::atomic<bool>& interrupted) {
  if (!options.host.starts_with("127.") && options.host != "localhost" && options.host != "::1")
    return UsageError(fmt::format(
        "--host {}: plain HTTP is refused off the loopback interface, since all between could read "
        "tokens and sources: serve 127.0.0.1, and put a proxy with TLS before it (--behind-proxy, "
        "docs/serve.md)",
        options.host));
  if (options.folder.empty() && !options.demo)
    return UsageError("give a folder for the server: assay serve DIR, or --demo for an example");
  if (options.demo && !options.archive.empty())
    return UsageError("--demo has an archive of its own: leave --archive out");
  if (!options.devices.empty()) ASSAY_RETURN_IF_ERROR(PlacesOf(options.devices));
  std::optional<TemporaryFolder> fresh;
  std::string folder = options.folder;
  if (options.demo) {
    if (folder.empty()) {
      ASSAY_ASSIGN_OR_RETURN(fresh, TemporaryFolder::Create());
      folder = (fresh->path() / "demo").string();
    }
    std::error_code code;
    if (!fs::exists(folder + "/archive.sqlite", code)) ASSAY_RETURN_IF_ERROR(FillDemo(folder));
  }
  AllowManyConnections();
  return ServeHall(options, folder, interrupted);
}

}  // namespace

int RunServe(const ServeOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto code = Serve(options, interrupted);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
