#include "mine/mined.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "assay.mined/1";

MinedCode CodeFromJson(const Json& json) {
  MinedCode code;
  json.at("python_code").get_to(code.python_code);
  json.at("entry_point").get_to(code.entry_point);
  json.at("triton_code").get_to(code.triton_code);
  json.at("original_triton_code").get_to(code.original_triton_code);
  json.at("kernels").get_to(code.kernels);
  json.at("libraries").get_to(code.libraries);
  json.at("versions").get_to(code.versions);
  return code;
}

}  // namespace

const std::vector<std::string>& MineModes() {
  static const std::vector<std::string> modes{"default", "max-autotune-no-cudagraphs"};
  return modes;
}

std::string MineKey(const ProblemRequest& problem, std::string_view mode, std::string_view device,
                    std::string_view python) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", problem.name, Sha256Hex(problem.source),
                  problem.size, problem.precision, mode, device, python);
  for (const auto& [name, value] : problem.set) text += fmt::format("\n{}={}", name, value);
  return Sha256Hex(text);
}

std::string MinedToJson(const Mined& mined) {
  Json json = {{"schema", kSchema},        {"key", mined.key},   {"date", mined.date},
               {"problem", mined.problem}, {"path", mined.path}, {"size", mined.size},
               {"set", mined.set},         {"hash", mined.hash}, {"mode", mined.mode},
               {"device", mined.device},   {"name", mined.name}};
  if (!mined.refusal.empty()) {
    json["refusal"] = mined.refusal;
  } else {
    const MinedCode& code = mined.code;
    json.update(Json{{"python_code", code.python_code},
                     {"entry_point", code.entry_point},
                     {"triton_code", code.triton_code},
                     {"original_triton_code", code.original_triton_code},
                     {"kernels", code.kernels},
                     {"libraries", code.libraries},
                     {"versions", code.versions}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Mined> MinedFromJson(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return UsageError("not JSON");
  try {
    if (json.value("schema", "") != kSchema)
      return UsageError(fmt::format("its schema is not {}", kSchema));
    Mined mined;
    json.at("key").get_to(mined.key);
    json.at("date").get_to(mined.date);
    json.at("problem").get_to(mined.problem);
    json.at("path").get_to(mined.path);
    json.at("size").get_to(mined.size);
    json.at("set").get_to(mined.set);
    json.at("hash").get_to(mined.hash);
    json.at("mode").get_to(mined.mode);
    json.at("device").get_to(mined.device);
    json.at("name").get_to(mined.name);
    mined.refusal = json.value("refusal", "");
    if (mined.refusal.empty()) mined.code = CodeFromJson(json);
    return mined;
  } catch (const Json::exception& error) {
    return UsageError(error.what());
  }
}

bool IsMined(std::string_view text) {
  return text.starts_with(fmt::format(R"({{"schema":"{}")", kSchema)) &&
         Json::accept(text.begin(), text.end());
}

Result<MineAnswer> MineAnswerFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return EnvironmentError("the compiler's process left no answer");
  try {
    if (json.contains("environment"))
      return EnvironmentError(json["environment"].get<std::string>());
    MineAnswer answer;
    for (const char* reason : {"refusal", "problem"})
      if (json.contains(reason)) answer.refusal = json[reason].get<std::string>();
    if (answer.refusal.empty()) answer.code = CodeFromJson(json);
    return answer;
  } catch (const Json::exception& error) {
    return EnvironmentError(
        fmt::format("the compiler's process left an answer that cannot be read: {}", error.what()));
  }
}

}  // namespace assay
