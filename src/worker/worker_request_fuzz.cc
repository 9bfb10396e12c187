// Parses a client's line. A refusal must give a reason; an accepted request must have all that its
// kind needs. The parser reads candidates' paths, so an input that names a readable file is refused
// or accepted by its ending alone.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "worker/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  using Kind = WorkerRequest::Kind;
  const std::string line(reinterpret_cast<const char*>(data), size);
  std::string id;
  const auto request = ParseWorkerRequest(line, &id);
  if (!request) {
    ASSAY_CHECK(!request.error().message.empty());
    return 0;
  }
  if (request->kind == Kind::kCancel || request->kind == Kind::kShutdown) return 0;
  ASSAY_CHECK(!request->id.empty() && request->id == id);
  ASSAY_CHECK(!request->terms.problem.problem.empty());
  ASSAY_CHECK(request->candidates.empty() == (request->kind == Kind::kDescribe));
  return 0;
}
