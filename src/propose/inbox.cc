#include "propose/inbox.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "answer/text.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"

namespace assay {
namespace {
namespace fs = std::filesystem;

constexpr size_t kNameBytesMax = 200, kNameBytesKept = 150, kHashDigits = 16;
constexpr int kLookMs = 100;  // where the kernel tells nothing, such as on a network's file system
constexpr size_t kPromptBytesMax = size_t{64} << 20;

std::string PromptText(const Prompt& prompt) {
  std::string text = prompt.system.empty() ? "" : prompt.system + "\n\n";
  return text + prompt.text + (prompt.text.ends_with('\n') ? "" : "\n");
}

// Facts that tell one state of a file from another.
struct FileState {
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileState&) const = default;
};

FileState StateOf(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_size,
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

int64_t WallNs() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Waits for a change in the folder, or a short time.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (fd_) ::inotify_add_watch(fd_.get(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO);
  }
  void Wait() {
    pollfd watched{fd_.get(), POLLIN, 0};  // a negative descriptor is passed over
    if (::poll(&watched, 1, kLookMs) <= 0) return;
    char events[4096];
    while (::read(fd_.get(), events, sizeof events) > 0) {
    }
  }

 private:
  UniqueFd fd_;
};

}  // namespace

std::string InboxName(const std::string& key) {
  std::string name;
  for (const char c : key) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                          (c == '.' && !name.empty());  // no hidden file
    if (is_plain) {
      name += c;
    } else if (c == '/') {
      name += '+';
    } else {
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  if (name.size() > kNameBytesMax)
    name = name.substr(0, kNameBytesKept) + "-" + Sha256Hex(key).substr(0, kHashDigits);
  return name;
}

Result<std::unique_ptr<Proposer>> InboxProposer::Open(std::string name, const std::string& folder,
                                                      InboxTerms terms) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code || ::access(folder.c_str(), W_OK | X_OK) != 0)
    return UsageError(fmt::format("cannot write in {}: {}", folder,
                                  code ? code.message() : std::strerror(errno)));
  return std::unique_ptr<Proposer>(new InboxProposer(std::move(name), folder, terms));
}

Result<void> InboxProposer::Ask(const Prompt& prompt, const std::string& stem) const {
  const std::string path = stem + ".prompt.md", text = MendUtf8(PromptText(prompt));
  std::error_code unknown;
  if (fs::exists(path, unknown)) {
    const auto there = ReadFile(path, kPromptBytesMax);
    if (there && *there == text) return {};
    if (fs::exists(stem + ".answer.md", unknown))
      return UsageError(
          fmt::format("{}.answer.md answers another prompt than this search asks: move both files "
                      "away, or use another folder",
                      stem));
  }
  return WriteFileAtomically(path, text);
}

Result<std::string> InboxProposer::Await(const std::string& path, StopToken stop) const {
  FolderWatch watch(folder_);
  const Deadline deadline = Deadline::AfterSeconds(terms_.timeout_s > 0 ? terms_.timeout_s : 1e9);
  const auto settle_ns = static_cast<int64_t>(terms_.settle_s * 1e9);
  FileState seen;
  int64_t seen_since_ns = 0;
  while (true) {
    if (stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
    const FileState state = StateOf(path);
    const int64_t now_ns = MonotonicNs();
    if (state != seen) {
      seen = state;
      seen_since_ns = now_ns;
    }
    // Written long ago by the file's own time, or watched for long enough.
    const int64_t age_ns = std::max(now_ns - seen_since_ns, WallNs() - state.changed_ns);
    if (state.size > 0 && age_ns >= settle_ns) {
      const auto text = ReadFile(path, terms_.answer_bytes_max);
      // A file that was changed meanwhile is looked at again.
      if (StateOf(path) == state) {
        if (!text) return EnvironmentError(text.error().message);
        return *text;
      }
    }
    if (deadline.Expired())
      return EnvironmentError(
          fmt::format("no answer in {} after {:.0f} s", path, terms_.timeout_s));
    if (::access(folder_.c_str(), F_OK) != 0)
      return EnvironmentError(fmt::format("{} is gone: prompts are asked there", folder_));
    watch.Wait();
  }
}

Result<Answer> InboxProposer::Propose(const Prompt& prompt, StopToken stop) {
  const int64_t start_ns = MonotonicNs();
  const std::string stem = (fs::path(folder_) / InboxName(prompt.key)).string();
  ASSAY_RETURN_IF_ERROR(Ask(prompt, stem));
  ASSAY_ASSIGN_OR_RETURN(std::string text, Await(stem + ".answer.md", stop));
  Answer answer;
  SplitText split = SplitReasoning(MendUtf8(std::move(text)));
  answer.text = std::move(split.rest);
  answer.reasoning = std::move(split.reasoning);
  answer.model = "inbox";
  answer.finish = "stop";
  answer.usage.wall_s = static_cast<double>(MonotonicNs() - start_ns) / 1e9;
  return answer;
}

}  // namespace assay
