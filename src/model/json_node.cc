#include "model/json_node.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

const Json& As(const void* value) { return *static_cast<const Json*>(value); }

}  // namespace

JsonNode JsonNode::At(std::string_view key) const {
  if (!IsObject()) return Missing(key);
  const auto member = As(value_).find(key);
  if (member == As(value_).end()) {
    SetError(Join(key), "is missing");
    return Missing(key);
  }
  return JsonNode(&*member, Join(key), error_);
}

JsonNode JsonNode::Find(std::string_view key) const {
  if (!IsObject()) return Missing(key);
  const auto member = As(value_).find(key);
  if (member == As(value_).end()) return Missing(key);
  return JsonNode(&*member, Join(key), error_);
}

bool JsonNode::IsNull() const { return value_ == nullptr || As(value_).is_null(); }

bool JsonNode::IsWhole() const { return value_ != nullptr && As(value_).is_number_integer(); }

std::string JsonNode::Text() const {
  if (value_ == nullptr) return {};
  if (!As(value_).is_string()) return Expected("a string"), std::string();
  return As(value_).get<std::string>();
}

std::string JsonNode::OneOf(const std::vector<std::string_view>& known) const {
  std::string text = Text();
  if (value_ == nullptr || !As(value_).is_string()) return text;
  for (const std::string_view name : known)
    if (text == name) return text;
  Refuse(text, known);
  return {};
}

bool JsonNode::Boolean() const {
  if (value_ == nullptr) return false;
  if (!As(value_).is_boolean()) return Expected("true or false"), false;
  return As(value_).get<bool>();
}

double JsonNode::Number() const {
  if (value_ == nullptr) return 0;
  if (As(value_).is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!As(value_).is_number()) return Expected("a number or null"), 0;
  return As(value_).get<double>();
}

std::optional<std::pair<int64_t, uint64_t>> JsonNode::ReadWhole() const {
  if (value_ == nullptr) return std::nullopt;
  if (As(value_).is_number_unsigned()) return std::pair(int64_t{0}, As(value_).get<uint64_t>());
  if (!As(value_).is_number_integer()) return Expected("a whole number"), std::nullopt;
  const auto number = As(value_).get<int64_t>();
  return number < 0 ? std::pair(number, uint64_t{0})
                    : std::pair(int64_t{0}, static_cast<uint64_t>(number));
}

void JsonNode::OutOfRange() const {
  SetError(path_, fmt::format("is out of range: {}", As(value_).dump()));
}

uint64_t JsonNode::WholeText() const {
  const std::string text = Text();
  if (value_ == nullptr || !As(value_).is_string()) return 0;
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  Expected("a whole number below 2^64, as text");
  return 0;
}

void JsonNode::ForEach(const std::function<void(const JsonNode&)>& visit, size_t count) const {
  if (value_ == nullptr) return;
  const Json& array = As(value_);
  if (!array.is_array()) return Expected("an array");
  if (count != SIZE_MAX && array.size() != count)
    return Expected(fmt::format("an array of {}", count));
  for (size_t i = 0; i < array.size() && error_->empty(); ++i)
    visit(JsonNode(&array[i], fmt::format("{}[{}]", path_, i), error_));
}

void JsonNode::ForEachMember(
    const std::function<void(const std::string&, const JsonNode&)>& visit) const {
  if (!IsObject()) return;
  for (const auto& [key, member] : As(value_).items()) {
    if (!error_->empty()) return;
    visit(key, JsonNode(&member, Join(key), error_));
  }
}

bool JsonNode::IsObject() const {
  if (value_ == nullptr) return false;
  if (!As(value_).is_object()) return Expected("an object"), false;
  return true;
}

std::string JsonNode::Join(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void JsonNode::SetError(std::string_view path, std::string_view problem) const {
  if (error_->empty())
    *error_ = fmt::format("{} {}", path.empty() ? "the document" : path, problem);
}

void JsonNode::Expected(std::string_view what) const {
  SetError(path_, fmt::format("must be {}, but is {}", what, Describe()));
}

std::string JsonNode::Describe() const {
  const Json& value = As(value_);
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  if (value.is_null()) return "null";
  constexpr size_t kShownMax = 40;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShownMax) text = "a long string";
  return text;
}

void JsonNode::RefuseName(const std::string& name) const {
  SetError(path_, fmt::format("is \"{}\", which is not known", name.substr(0, 40)));
}

void JsonNode::Refuse(const std::string& text, const std::vector<std::string_view>& known) const {
  std::string names;
  for (const std::string_view name : known)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  SetError(path_, fmt::format("is \"{}\", which is none of: {}", text.substr(0, 40), names));
}

struct JsonDocument::Value {
  Json json;
};

JsonDocument::JsonDocument(std::unique_ptr<Value> value) : value_(std::move(value)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Result<JsonDocument> JsonDocument::Parse(std::string_view text) {
  try {
    return JsonDocument(std::make_unique<Value>(Json::parse(text)));
  } catch (const Json::exception& exception) {
    return UsageError(exception.what());
  }
}

JsonNode JsonDocument::Root(std::string* error) const { return JsonNode(&value_->json, "", error); }

}  // namespace assay
