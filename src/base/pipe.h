// A pipe of this process's own.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

struct Pipe {
  UniqueFd read, write;
};

// Both ends are closed by an exec. Errors: kEnvironment.
Result<Pipe> MakePipe();

// Reads and writes of `fd` return at once from now on.
void DoNotBlock(int fd);

}  // namespace assay
