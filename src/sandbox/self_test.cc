// Theory of operation. Both sandboxes are started before the end of either is awaited, since an
// ended one gives its user id back. What `breakout` prints can be trusted, for nothing foreign runs
// there; that it printed all of it is checked. What it cannot know is looked at from here: under
// which user id it really ran, and that the shared memory is as it was.
#include "sandbox/self_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "base/unique_fd.h"

namespace assay {
namespace {

constexpr double kTimeoutSeconds = 20;
constexpr size_t kRegionBytes = 16384;
constexpr char kPattern = 0x5a;

std::unexpected<Error> Failed(std::string_view what) {
  return EnvironmentError(
      fmt::format("the sandbox's self-test cannot be prepared: {}: {}", what, strerror(errno)));
}

Result<UniqueFd> SealedFile(const std::string& content, int seals) {
  UniqueFd fd(::memfd_create("assay-self-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd ||
      ::pwrite(fd.get(), content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
    return Failed("shared memory");
  if (seals != 0 && ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return Failed("seals");
  return fd;
}

// A socket that only a process of this network namespace could connect to.
struct Listener {
  UniqueFd fd;
  std::string name;
};

Result<Listener> Listen() {
  std::random_device random;
  Listener listener{UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                    fmt::format("assay-self-test-{:08x}{:08x}", random(), random())};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(listener.name.begin(), listener.name.end(), address.sun_path + 1);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + listener.name.size());
  if (!listener.fd ||
      ::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.fd.get(), 4) != 0)
    return Failed("a socket");
  return listener;
}

// The user that sent the greeting, as the kernel names it here.
std::optional<uid_t> SenderOf(int socket) {
  char byte;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_DONTWAIT) != 1) return std::nullopt;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) return std::nullopt;
  ucred credentials{};
  std::memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
  return credentials.uid;
}

}  // namespace

// One of the two sandboxes.
class SelfTestTrial {
 public:
  SelfTestTrial(const SandboxTools& tools, const SelfTestSetup& setup, bool native)
      : tools_(tools), setup_(setup), native_(native) {}

  Result<void> Start(const std::string& socket_name);
  Result<void> AwaitEnd();
  // After AwaitEnd.
  Result<void> AddTo(SelfTestReport* report) const;
  std::optional<uid_t> uid() const { return uid_; }

 private:
  void AddLines(SelfTestReport* report, bool* whole, bool* last) const;

  const SandboxTools& tools_;
  const SelfTestSetup& setup_;
  bool native_;
  std::optional<Sandbox> sandbox_;
  UniqueFd greeting_, sealed_;
  ToolRun run_;
  std::optional<uid_t> uid_;
  bool memory_kept_ = false;
};

Result<void> SelfTestTrial::Start(const std::string& socket_name) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return Failed("a socket");
  greeting_ = UniqueFd(pair[0]);
  const UniqueFd theirs(pair[1]);
  const int on = 1;
  ::setsockopt(greeting_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  ASSAY_ASSIGN_OR_RETURN(const UniqueFd lockdown,
                         SealedFile(native_ ? setup_.native_lockdown : setup_.tools_lockdown, 0));
  const std::string content(kRegionBytes, kPattern);
  ASSAY_ASSIGN_OR_RETURN(sealed_, SealedFile(content, setup_.read_only_seals));
  ASSAY_ASSIGN_OR_RETURN(const UniqueFd sized, SealedFile(content, setup_.size_seals));
  SandboxRequest request;
  request.arguments = {"/assay/breakout", native_ ? "native" : "tools", std::to_string(::getpid()),
                       socket_name};
  request.files = {{"/assay/breakout", tools_.breakout, true}};
  request.descriptors = {
      {theirs.get(), 3}, {lockdown.get(), 4}, {sealed_.get(), 5}, {sized.get(), 6}};
  request.may_start_processes = !native_;
  if (!native_) setup_.change(&request);
  ASSAY_ASSIGN_OR_RETURN(Sandbox sandbox, Sandbox::BeginWith(tools_, request, ""));
  sandbox_.emplace(std::move(sandbox));
  return {};
}

Result<void> SelfTestTrial::AwaitEnd() {
  ASSAY_RETURN_IF_ERROR(sandbox_->AwaitStarted());
  ASSAY_ASSIGN_OR_RETURN(run_.exit, sandbox_->Wait(Deadline::AfterSeconds(kTimeoutSeconds), {}));
  run_.timed_out = sandbox_->timed_out();
  run_.output = sandbox_->Output();
  uid_ = SenderOf(greeting_.get());
  const std::string content(kRegionBytes, kPattern);
  std::string after(content.size() + 1, '\0');
  memory_kept_ = ::pread(sealed_.get(), after.data(), after.size(), 0) ==
                     static_cast<ssize_t>(content.size()) &&
                 after.starts_with(content);
  return {};
}

namespace {

void AddBreach(SelfTestReport* report, const std::string& attempt, const std::string& detail) {
  const auto same = [&](const SelfTestReport::Breach& known) { return known.attempt == attempt; };
  const auto known = std::find_if(report->breaches.begin(), report->breaches.end(), same);
  if (known == report->breaches.end())
    report->breaches.push_back({attempt, detail});
  else if (known->detail.find(detail) == std::string::npos)
    known->detail += ", " + detail;
}

}  // namespace

void SelfTestTrial::AddLines(SelfTestReport* report, bool* whole, bool* last) const {
  int made = 0;
  std::istringstream text(run_.output);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string verb, name, detail;
    words >> verb >> name >> std::ws;
    std::getline(words, detail);
    if (verb == "held" || verb == "broke") ++made;
    if (verb == "broke") AddBreach(report, name, detail);
    if (verb == "skipped" && !native_) report->skipped.push_back(name);
    if (verb == "last") *last = true;
    if (verb == "tried") *whole = name == std::to_string(made);
  }
  report->tried += made;
}

Result<void> SelfTestTrial::AddTo(SelfTestReport* report) const {
  bool whole = false, last = false;
  AddLines(report, &whole, &last);
  const bool killed = !run_.exit.exited && run_.exit.status == SIGSYS && last;
  const bool ended = run_.exit.exited && run_.exit.status == 0;
  if (!whole || !uid_ || !(native_ ? killed || ended : ended))
    return EnvironmentError(fmt::format(
        "the sandbox's self-test could not be finished: it ended with {} {}{}",
        run_.exit.exited ? "status" : "signal", run_.exit.status,
        run_.timed_out ? fmt::format(" after {:.0f} s", kTimeoutSeconds) : std::string()));
  if (killed) ++report->tried;
  report->tried += 2;
  if (!memory_kept_) AddBreach(report, "sealed-memory", "its content changed");
  if (setup_.own_uid && (*uid_ == 0 || *uid_ == ::geteuid()))
    AddBreach(report, "own-uid", "it ran under the judge's user id");
  return {};
}

Result<SelfTestReport> RunSelfTest(const SandboxTools& tools, const SelfTestSetup& setup) {
  ASSAY_ASSIGN_OR_RETURN(const Listener listener, Listen());
  SelfTestTrial for_tools(tools, setup, false), for_hosts(tools, setup, true);
  for (SelfTestTrial* trial : {&for_tools, &for_hosts})
    ASSAY_RETURN_IF_ERROR(trial->Start(listener.name));
  for (SelfTestTrial* trial : {&for_tools, &for_hosts}) ASSAY_RETURN_IF_ERROR(trial->AwaitEnd());
  SelfTestReport report;
  ASSAY_RETURN_IF_ERROR(for_tools.AddTo(&report));
  ASSAY_RETURN_IF_ERROR(for_hosts.AddTo(&report));
  if (setup.own_uid && for_tools.uid() == for_hosts.uid())
    AddBreach(&report, "own-uid", "two sandboxes shared a user id");
  return report;
}

std::string DescribeBreaches(const SelfTestReport& report) {
  std::vector<std::string> parts;
  for (const SelfTestReport::Breach& breach : report.breaches)
    parts.push_back(breach.detail.empty() ? breach.attempt
                                          : fmt::format("{} ({})", breach.attempt, breach.detail));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace assay
