// The machine code of a native candidate for the processor, in numbers.
#pragma once

#include "base/result.h"
#include "builders/build_candidate.h"
#include "toolchain/native_loop.h"

namespace assay {

// Compiles the candidate in a sandbox once more, with line numbers, and reads its disassembly, made
// in a sandbox, too. The machine code is that which is judged. Empty for other candidates, for one
// that does not build, without objdump, and on other processors than x86-64. Errors: kEnvironment,
// kInterrupted.
Result<NativeCode> ReadNativeCode(const CandidateSource& source, const CandidateLimits& limits,
                                  StopToken stop);

}  // namespace assay
