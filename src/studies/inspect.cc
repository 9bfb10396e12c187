#include "studies/inspect.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "machine/machine.h"
#include "values/oracle.h"
#include "values/work_account.h"

namespace assay {
namespace {

constexpr uint64_t kProfileMs = 2000;
constexpr double kTimeoutS = 120;
constexpr size_t kOperatorsMax = 4096;

Result<Profile> ParseProfile(const std::string& text) {
  Profile profile;
  try {
    const auto document = nlohmann::json::parse(text);
    profile.wall_ns = document.at("wall_ns").get<double>();
    for (const auto& item : document.at("operators")) {
      if (profile.operators.size() == kOperatorsMax) break;
      profile.operators.push_back({item.at("name").get<std::string>().substr(0, 100),
                                   item.at("calls").get<double>(),
                                   item.at("self_ns").get<double>()});
    }
  } catch (const nlohmann::json::exception& exception) {
    return EnvironmentError(
        fmt::format("the reference host's profile cannot be read: {}", exception.what()));
  }
  return profile;
}

Result<Profile> TakeProfile(Host& host) {
  if (auto loaded = host.Request(wire::FrameKind::kLoad, {}, kTimeoutS); !loaded)
    return std::unexpected(OracleError(loaded.error()));
  auto reply = RequestText(host, wire::FrameKind::kProfile, kProfileMs, 0, kTimeoutS);
  if (!reply) return std::unexpected(OracleError(reply.error()));
  return ParseProfile(reply->text);
}

Result<Inspection> Inspect(const InspectRequest& request) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  OracleOptions options;
  options.problem = request.problem;
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(request.python));
  options.threads = request.threads > 0 ? request.threads : DefaultThreads();
  options.stop = request.stop;
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Host> host, StartOracleHost(options));
  // Without a profile nothing is allocated, so no size is too large.
  if (request.profile) options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  ASSAY_ASSIGN_OR_RETURN(ProblemEstimate estimate, EstimateProblem(*host, options));
  const CallBytes& call = estimate.call;
  Inspection inspection{std::move(estimate.account),
                        call.inputs,
                        call.weights,
                        call.outputs,
                        LeastBytes(call),
                        std::nullopt,
                        options.python.torch_version};
  // A file that fake tensors cannot follow at all: loading it says what is wrong with it.
  if (inspection.account.outputs.empty() && inspection.account.inputs.empty() && !request.profile)
    if (auto loaded = host->Request(wire::FrameKind::kLoad, {}, kTimeoutS); !loaded)
      return std::unexpected(OracleError(loaded.error()));
  if (request.profile) {
    ASSAY_ASSIGN_OR_RETURN(inspection.profile, TakeProfile(*host));
  }
  return inspection;
}

}  // namespace

Result<Inspection> InspectProblem(const InspectRequest& request) {
  auto inspection = Inspect(request);
  if (inspection) return inspection;
  Error error = inspection.error();
  NameFiles(request.problem.path, "", &error.message);
  return std::unexpected(std::move(error));
}

}  // namespace assay
