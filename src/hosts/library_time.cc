#include "hosts/library_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/files.h"

namespace assay {
namespace {

constexpr size_t kMapsBytesMax = size_t{4} << 20;
constexpr std::string_view kOwnCode = "its own code";

// The address that a stopped thread stood at; 0 when it was in a system call or is gone.
uint64_t StoppedAt(const std::filesystem::path& thread) {
  const auto text = ReadFile(thread / "syscall", 4096);
  unsigned long long stack = 0, address = 0;
  if (!text || std::sscanf(text->c_str(), "-1 %llx %llx", &stack, &address) != 2) return 0;
  return address;
}

}  // namespace

std::vector<CodeRange> ParseCodeRanges(std::string_view maps) {
  std::vector<CodeRange> ranges;
  while (!maps.empty()) {
    const size_t end = std::min(maps.find('\n'), maps.size());
    const std::string line(maps.substr(0, end));
    maps.remove_prefix(std::min(end + 1, maps.size()));
    unsigned long long begin = 0, stop = 0;
    char access[5] = "";
    int path_at = 0;
    // 7f00-7f10 r-xp 00000000 fe:00 123    /usr/lib/libm.so.6
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %*s %*s %*s %n", &begin, &stop, access, &path_at) <
            3 ||
        access[2] != 'x')
      continue;
    std::string path = path_at > 0 ? line.substr(static_cast<size_t>(path_at)) : std::string();
    path = path.substr(path.rfind('/') + 1);
    if (const size_t deleted = path.find(" (deleted)"); deleted != std::string::npos)
      path.resize(deleted);
    ranges.push_back({begin, stop, std::move(path)});
  }
  return ranges;
}

bool IsForeignLibrary(std::string_view name) {
  if (name.empty() || name.front() == '[' || !name.starts_with("lib")) return false;
  // libpython and libassay_host run the candidate; the rest is what compilers link by themselves.
  constexpr std::array kRunTime = {
      "libassay_host.", "libpython",  "libc.", "libc-", "libm.",   "libm-",  "libmvec", "libstdc++",
      "libgcc_s",       "libpthread", "libdl", "librt", "libgomp", "libomp", "libutil"};
  return std::none_of(kRunTime.begin(), kRunTime.end(),
                      [name](std::string_view known) { return name.starts_with(known); });
}

void LibraryClock::Count(uint64_t address, const std::vector<CodeRange>& ranges) {
  const auto found = std::find_if(ranges.begin(), ranges.end(), [address](const CodeRange& range) {
    return range.begin <= address && address < range.end;
  });
  if (found == ranges.end()) {
    ++samples_[std::string(kOwnCode)];
    return;
  }
  // Libraries such as oneDNN write their kernels as they run: code without a file, in a process
  // that has one of them, is taken for theirs.
  const bool generated =
      found->name.empty() && std::any_of(ranges.begin(), ranges.end(), [](const CodeRange& range) {
        return IsForeignLibrary(range.name);
      });
  const bool foreign = generated || IsForeignLibrary(found->name);
  ++samples_[generated ? kGeneratedCode : foreign ? found->name : std::string(kOwnCode)];
}

void LibraryClock::Sample(pid_t pid) {
  const std::filesystem::path folder = fmt::format("/proc/{}", pid);
  // Libraries come and go: the map is that of the moment.
  const auto maps = ReadFile(folder / "maps", kMapsBytesMax);
  if (!maps) return;
  const std::vector<CodeRange> ranges = ParseCodeRanges(*maps);
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator(folder / "task", ignored))
    if (const uint64_t address = StoppedAt(thread.path()); address != 0) Count(address, ranges);
}

LibraryTime LibraryClock::Time() const {
  LibraryTime time;
  for (const auto& [name, count] : samples_) time.samples += count;
  for (const auto& [name, count] : samples_) {
    if (name == kOwnCode) continue;
    const double share = static_cast<double>(count) / static_cast<double>(time.samples);
    time.shares[name] = share;
    time.foreign_share += share;
  }
  return time;
}

}  // namespace assay
