#include "hosts/made_once.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/files.h"
#include "base/unique_fd.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr int kRunMsMax = 120'000, kLookEveryMs = 20;
constexpr const char* kUnfinished = ".making";

// Waits for the child; false where it fails, or is not done in time.
bool Await(pid_t pid) {
  int status = 0;
  for (int waited_ms = 0;; waited_ms += kLookEveryMs) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return false;
    if (waited_ms >= kRunMsMax) break;
    ::poll(nullptr, 0, kLookEveryMs);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return false;
}

// Root's sandboxes run as another user, who must be able to look into it.
bool MakeFolder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return false;
  if (::geteuid() == 0)
    for (const fs::path& each : {folder, folder.parent_path(), folder.parent_path().parent_path()})
      fs::permissions(each, fs::perms(0755), code);
  return true;
}

// Removes the folders that killed calls left behind.
void RemoveUnfinished(const fs::path& all) {
  constexpr auto kSurelyDead = std::chrono::hours(1);
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(all, code)) {
    std::error_code ignored;
    const bool unfinished = entry.path().extension() == kUnfinished;
    if (unfinished &&
        fs::file_time_type::clock::now() - entry.last_write_time(ignored) > kSurelyDead)
      fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

fs::path MadeFolders(const std::string& kind) {
  return (::geteuid() == 0 ? fs::path("/var/cache/assay") : CacheFolder()) / kind;
}

std::string MadeOnce(const fs::path& all, const std::string& key,
                     const std::function<bool(const fs::path& making)>& make) {
  const fs::path folder = all / key;
  std::error_code code;
  if (fs::is_directory(folder, code)) return folder.string();
  fs::create_directories(all, code);
  const UniqueFd lock(::open(all.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) return {};
  while (::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  if (fs::is_directory(folder, code)) return folder.string();
  RemoveUnfinished(all);
  const fs::path making = all / fmt::format("{}-{}{}", key, ::getpid(), kUnfinished);
  if (MakeFolder(making) && make(making)) fs::rename(making, folder, code);
  fs::remove_all(making, code);
  return fs::is_directory(folder, code) ? folder.string() : std::string();
}

void KeepYoungest(const fs::path& all, size_t count) {
  std::vector<std::pair<fs::file_time_type, fs::path>> folders;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(all, code)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && entry.path().extension() != kUnfinished)
      folders.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  std::sort(folders.rbegin(), folders.rend());
  for (size_t i = count; i < folders.size(); ++i) fs::remove_all(folders[i].second, code);
}

bool RunOutside(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::umask(022);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  return Await(pid);
}

}  // namespace assay
