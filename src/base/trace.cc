#include "base/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace assay {
namespace {

int OpenTrace() {
  const char* path = std::getenv("ASSAY_TRACE");
  if (path == nullptr || *path == '\0') return -1;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  // The format does without its closing bracket.
  if (fd >= 0 && ::lseek(fd, 0, SEEK_END) == 0 && ::write(fd, "[\n", 2) != 2) return -1;
  return fd;
}

int TraceFd() {
  static const int fd = OpenTrace();
  return fd;
}

}  // namespace

bool Traced() { return TraceFd() >= 0; }

void AddSpan(std::string_view name, int64_t begin_ns, int64_t end_ns, int lane) {
  if (!Traced()) return;
  const std::string line = fmt::format(
      R"({{"name":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{}}},)"
      "\n",
      name, static_cast<double>(begin_ns) / 1e3, static_cast<double>(end_ns - begin_ns) / 1e3,
      ::getpid(), lane == 0 ? ::gettid() : lane);
  // A trace that cannot be written is a trace that is missing.
  [[maybe_unused]] const ssize_t written = ::write(TraceFd(), line.data(), line.size());
}

}  // namespace assay
