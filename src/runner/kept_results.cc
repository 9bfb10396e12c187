#include "runner/kept_results.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "assay.kept-result/1";
constexpr size_t kResultBytesMax = size_t{64} << 20;
constexpr size_t kLeaseDigits = 16;

}  // namespace

KeptResults::KeptResults(fs::path folder) : folder_(std::move(folder)) {
  std::error_code code;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder_, code))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    const auto text = ReadFile(path, kResultBytesMax);
    if (!text) continue;
    const Json json = Json::parse(*text, nullptr, false);
    if (!json.is_object() || json.value("schema", Json()) != kSchema) continue;
    const auto job = json.find("job"), body = json.find("body");
    if (job == json.end() || body == json.end() || !job->is_string() || !body->is_object())
      continue;
    results_.push_back({job->get<std::string>(), body->dump(), path});
  }
}

Result<void> KeptResults::Keep(const std::string& job, const std::string& lease, std::string body) {
  // The lease stays out of the name: who knows it can end the job.
  const fs::path path =
      folder_ / (job + "-" + Sha256Hex(job + " " + lease).substr(0, kLeaseDigits) + ".json");
  const Json json = {{"schema", kSchema}, {"job", job}, {"body", Json::parse(body)}};
  const auto written = WriteFileAtomically(path, json.dump() + "\n");
  results_.push_back({job, std::move(body), written ? path : fs::path()});
  return written;
}

void KeptResults::DropOldest() {
  std::error_code code;
  if (!results_.front().path.empty()) fs::remove(results_.front().path, code);
  results_.pop_front();
}

}  // namespace assay
