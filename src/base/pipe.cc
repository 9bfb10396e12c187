#include "base/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay {

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return EnvironmentError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void DoNotBlock(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace assay
