// Reads --set NAME=VALUE and makes the JSON that hosts read: an accepted setting must arrive
// unchanged. An input is a list of settings, one a line.
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "problem/suite.h"
#include "values/oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  ProblemRequest problem;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto setting = ParseSetting(line);
    if (!setting) {
      ASSAY_CHECK(setting.error().kind == ErrorKind::kUsage && !setting.error().message.empty());
      continue;
    }
    ASSAY_CHECK(setting->first + "=" + setting->second == line);
    problem.set.insert_or_assign(setting->first, setting->second);
  }
  const std::string settings = HostSettings(problem, 1, UINT64_MAX, "eager");
  const auto document = nlohmann::json::parse(settings, nullptr, false);
  ASSAY_CHECK(document.is_object());
  ASSAY_CHECK((document.at("set").get<std::map<std::string, std::string>>() == problem.set));
  ASSAY_CHECK(document.at("weights_seed").get<uint64_t>() == UINT64_MAX);
  return 0;
}
