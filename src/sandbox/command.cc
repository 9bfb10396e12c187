#include "sandbox/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/check.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfineInside = "/assay/confine";
constexpr uint64_t kAddressSpaceSlackBytes = uint64_t{16} << 30;
// Within the user namespace, where RLIMIT_NPROC counts: bubblewrap's inner process and confine.
constexpr uint32_t kOwnProcesses = 2;

constexpr std::string_view kUsers = "assay:x:1000:1000::/tmp:/bin/sh\n";
constexpr std::string_view kGroups = "assay:x:1000:\n";

// Top-level folders that are links into /usr on most systems and real folders on some.
constexpr const char* kSystemFolders[] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};
// Beside them: what the dynamic linker and the processor-detection of numerical libraries read.
constexpr const char* kSystemParts[] = {"/etc/alternatives",       "/etc/ld.so.cache",
                                        "/etc/ld.so.conf",         "/etc/ld.so.conf.d",
                                        "/sys/devices/system/cpu", "/sys/devices/system/node"};

std::unexpected<Error> Failed(std::string_view what) {
  return EnvironmentError(fmt::format("cannot prepare the sandbox: {}: {}", what, strerror(errno)));
}

bool IsWithin(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// An absolute path without "." and "..", so that a mount point is where its text says.
bool IsPlainPath(const std::string& path) {
  return path.size() > 1 && path[0] == '/' && path.find('\0') == std::string::npos &&
         fs::path(path).lexically_normal().string() == path;
}

class Builder {
 public:
  void Option(std::initializer_list<std::string> words) { options_.insert(options_.end(), words); }
  Result<int> Own(UniqueFd fd);                  // moves it to a private number
  Result<int> DataFd(std::string_view content);  // inherited; a file that stands at its start
  Result<void> File(const std::string& target, std::string_view content, bool executable);
  Result<UniqueFd> PipeTo(
      int number);  // its write end under `number` inside; returns the read end, which never blocks
  Result<void> Finish(const std::string& bubblewrap, const std::vector<std::string>& inside);

  SandboxCommand command;

 private:
  std::vector<std::string> options_;
};

Result<int> Builder::Own(UniqueFd fd) {
  UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kPrivateFdMin));
  if (!high) return Failed("no descriptor left");
  command.owned.push_back(std::move(high));
  return command.owned.back().get();
}

Result<int> Builder::DataFd(std::string_view content) {
  UniqueFd fd(::memfd_create("assay-data", MFD_CLOEXEC));
  if (!fd) return Failed("memfd_create");
  for (std::string_view left = content; !left.empty();) {
    const ssize_t count = ::write(fd.get(), left.data(), left.size());
    if (count <= 0) return Failed("writing shared memory");
    left.remove_prefix(static_cast<size_t>(count));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return Failed("lseek");
  ASSAY_ASSIGN_OR_RETURN(const int number, Own(std::move(fd)));
  command.kept.push_back(number);
  return number;
}

// Copied into the root's own tmpfs, which is read-only in the end: a mount for each file would cost
// 0.2 ms.
Result<void> Builder::File(const std::string& target, std::string_view content, bool executable) {
  ASSAY_CHECK(IsPlainPath(target));
  ASSAY_ASSIGN_OR_RETURN(const int fd, DataFd(content));
  Option({"--perms", executable ? "0555" : "0444", "--file", std::to_string(fd), target});
  return {};
}

Result<UniqueFd> Builder::PipeTo(int number) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Failed("pipe");
  UniqueFd read_end(ends[0]);
  // The judge takes what is there and goes on.
  if (::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) return Failed("fcntl");
  ASSAY_ASSIGN_OR_RETURN(const int write_end, Own(UniqueFd(ends[1])));
  if (number >= 0) command.moved.emplace_back(write_end, number);
  return read_end;
}

Result<void> Builder::Finish(const std::string& bubblewrap,
                             const std::vector<std::string>& inside) {
  std::string words;
  for (const std::string& option : options_) {
    ASSAY_CHECK(option.find('\0') == std::string::npos);
    words.append(option).push_back('\0');
  }
  ASSAY_ASSIGN_OR_RETURN(const int fd, DataFd(words));
  command.arguments = {bubblewrap, "--args", std::to_string(fd), "--"};
  command.arguments.insert(command.arguments.end(), inside.begin(), inside.end());
  return {};
}

void AddNamespaces(Builder& builder) {
  builder.Option({"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc",
                  "--unshare-uts", "--unshare-cgroup-try", "--disable-userns", "--die-with-parent",
                  "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000",
                  "--hostname", "assay", "--clearenv"});
}

Result<void> AddSystem(Builder& builder, const std::vector<std::string>& devices) {
  builder.Option({"--ro-bind", "/usr", "/usr"});
  for (const char* folder : kSystemFolders) {
    std::error_code code;
    const fs::file_status status = fs::symlink_status(folder, code);
    if (fs::is_symlink(status)) {
      builder.Option({"--symlink", fs::read_symlink(folder, code).string(), folder});
    } else if (fs::is_directory(status)) {
      builder.Option({"--ro-bind", folder, folder});
    }
  }
  builder.Option({"--dir", "/etc"});
  for (const char* part : kSystemParts) builder.Option({"--ro-bind-try", part, part});
  ASSAY_RETURN_IF_ERROR(builder.File("/etc/passwd", kUsers, false));
  ASSAY_RETURN_IF_ERROR(builder.File("/etc/group", kGroups, false));
  // /proc/sys over itself: were the sandbox started by root after all, it would be writable through
  // the new /proc.
  builder.Option({"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"});
  for (const std::string& device : devices) {
    ASSAY_CHECK(IsPlainPath(device) && IsWithin(device, "/dev"));
    builder.Option({"--dev-bind", device, device});
  }
  builder.Option({"--remount-ro", "/dev"});
  return {};
}

Result<void> AddRequested(Builder& builder, const SandboxRequest& request,
                          const std::string& confine) {
  builder.Option({"--perms", "1777", "--size", std::to_string(request.limits.scratch_bytes),
                  "--tmpfs", "/tmp"});
  for (const SandboxBind& bind : request.binds) {
    ASSAY_CHECK(IsPlainPath(bind.target) && !IsWithin(bind.target, "/proc") &&
                !IsWithin(bind.target, "/dev"));
    builder.Option({"--ro-bind", bind.source, bind.target});
  }
  for (const SandboxFile& file : request.files) {
    // A mount point below a folder that foreign code writes could be turned into one elsewhere.
    ASSAY_CHECK(!IsWithin(file.target, "/tmp") && !IsWithin(file.target, "/proc") &&
                !IsWithin(file.target, "/dev"));
    ASSAY_RETURN_IF_ERROR(builder.File(file.target, file.content, file.executable));
  }
  ASSAY_RETURN_IF_ERROR(builder.File(kConfineInside, confine, true));
  builder.Option({"--remount-ro", "/", "--chdir", "/tmp"});
  for (const auto& [name, value] : request.environment) builder.Option({"--setenv", name, value});
  return {};
}

void AddLimits(const SandboxLimits& limits, bool has_memory_cgroup,
               std::vector<std::string>* inside) {
  const uint64_t address_space_bytes = limits.address_space_bytes != 0
                                           ? limits.address_space_bytes
                                           : limits.memory_bytes + kAddressSpaceSlackBytes;
  const auto add = [&](const char* name, uint64_t value) {
    inside->insert(inside->end(), {"--limit", name, std::to_string(value)});
  };
  add("as", address_space_bytes);
  // Where no control group counts memory, the nearest thing: private writable memory, for each
  // process by itself.
  if (!has_memory_cgroup) add("data", limits.memory_bytes);
  add("fsize", limits.file_bytes);
  add("nproc", limits.processes + kOwnProcesses);
  add("cpu", static_cast<uint64_t>(std::ceil(limits.cpu_seconds)));
  add("stack", uint64_t{8} << 20);
  add("nofile", 1024);
  for (const char* none : {"core", "msgqueue", "nice", "rtprio"}) add(none, 0);
}

Result<std::vector<std::string>> InsideCommand(Builder& builder, const SandboxFilters& filters,
                                               const SandboxRequest& request,
                                               bool has_memory_cgroup,
                                               const std::string& artifact_path) {
  std::vector<std::string> inside = {kConfineInside, "--report", std::to_string(kReportFd),
                                     "--output", std::to_string(kOutputBytesMax)};
  int number = kFirstFilterFd;
  const auto add_filter = [&](const std::string& program) -> Result<void> {
    if (program.empty()) return {};
    UniqueFd fd(::memfd_create("assay-filter", MFD_CLOEXEC));
    if (!fd ||
        ::write(fd.get(), program.data(), program.size()) != static_cast<ssize_t>(program.size()))
      return Failed("memfd_create");
    ASSAY_ASSIGN_OR_RETURN(const int owned, builder.Own(std::move(fd)));
    builder.command.moved.emplace_back(owned, number);
    inside.insert(inside.end(), {"--filter", std::to_string(number++)});
    return {};
  };
  ASSAY_RETURN_IF_ERROR(add_filter(request.may_use_loopback ? filters.loopback : filters.base));
  if (request.may_use_loopback) inside.push_back("--loopback");
  if (!request.may_start_processes) ASSAY_RETURN_IF_ERROR(add_filter(filters.no_processes));
  AddLimits(request.limits, has_memory_cgroup, &inside);
  for (const std::string& device : request.devices)
    inside.insert(inside.end(), {"--device", device});
  if (!artifact_path.empty()) {
    ASSAY_CHECK(IsPlainPath(artifact_path) && IsWithin(artifact_path, "/tmp"));
    UniqueFd fd(::memfd_create("assay-artifact", MFD_CLOEXEC));
    if (!fd) return Failed("memfd_create");
    builder.command.artifact = UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kPrivateFdMin));
    if (!builder.command.artifact) return Failed("no descriptor left");
    builder.command.moved.emplace_back(builder.command.artifact.get(), kArtifactFd);
    inside.insert(inside.end(), {"--artifact", artifact_path, std::to_string(kArtifactFd),
                                 std::to_string(request.limits.file_bytes)});
  }
  inside.push_back("--");
  inside.insert(inside.end(), request.arguments.begin(), request.arguments.end());
  return inside;
}

Result<void> AddDescriptors(Builder& builder, const SandboxRequest& request) {
  for (const auto& [ours, inside] : request.descriptors) {
    ASSAY_CHECK(inside >= 3 && inside <= kRequestedMax);
    UniqueFd copy(::fcntl(ours, F_DUPFD_CLOEXEC, kPrivateFdMin));
    if (!copy) return Failed("a requested descriptor");
    builder.command.moved.emplace_back(copy.get(), inside);
    builder.command.owned.push_back(std::move(copy));
  }
  return {};
}

}  // namespace

Result<SandboxCommand> MakeCommand(const Bubblewrap& bubblewrap, const std::string& confine,
                                   const SandboxFilters& filters, const SandboxRequest& request,
                                   bool has_memory_cgroup, const std::string& artifact_path) {
  ASSAY_CHECK(!request.arguments.empty() && IsPlainPath(request.arguments[0]));
  Builder builder;
  AddNamespaces(builder);
  ASSAY_RETURN_IF_ERROR(AddSystem(builder, request.devices));
  ASSAY_RETURN_IF_ERROR(AddRequested(builder, request, confine));
  ASSAY_RETURN_IF_ERROR(AddDescriptors(builder, request));
  ASSAY_ASSIGN_OR_RETURN(builder.command.report, builder.PipeTo(kReportFd));
  ASSAY_ASSIGN_OR_RETURN(builder.command.info, builder.PipeTo(-1));
  const int info_write = builder.command.owned.back().get();
  builder.command.kept.push_back(info_write);
  builder.Option({"--info-fd", std::to_string(info_write)});
  ASSAY_ASSIGN_OR_RETURN(builder.command.output, builder.PipeTo(-1));
  builder.command.output_write = builder.command.owned.back().get();
  // Neither side ever waits for the other: what does not fit is dropped.
  if (::fcntl(builder.command.output_write, F_SETFL, O_NONBLOCK) != 0) return Failed("fcntl");
  ASSAY_ASSIGN_OR_RETURN(const auto inside, InsideCommand(builder, filters, request,
                                                          has_memory_cgroup, artifact_path));
  ASSAY_RETURN_IF_ERROR(builder.Finish(bubblewrap.path, inside));
  return std::move(builder.command);
}

}  // namespace assay
