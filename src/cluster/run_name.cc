#include "cluster/run_name.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "machine/seeds.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytesMax = 4096;
constexpr const char* kSchema = "assay.cluster/1";

bool IsName(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Result<std::string> RunName(const std::string& folder) {
  const fs::path path = fs::path(folder) / kRunNameFile;
  std::error_code code;
  if (fs::exists(path, code)) {
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kBytesMax));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const std::string name = json.is_object() ? json.value("run", "") : "";
    if (IsName(name)) return name;
    return UsageError(
        fmt::format("{} names no run: remove it, and all is judged anew", path.string()));
  }
  const std::string name = fmt::format("{:012x}", FreshSeed() >> 16);
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
      path, fmt::format("{{\"schema\":\"{}\",\"run\":\"{}\"}}\n", kSchema, name)));
  return name;
}

}  // namespace assay
