// Reads JSON that may come from anywhere: every access names its field. Only .cc files that parse
// include it, since the library compiles slowly.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// A place in a document, with its path. The first failure is kept in the shared error, and every
// later access gives a default: a reader asks once, at its end. Both must outlive it. Never throws.
class JsonNode {
 public:
  // `error` must be empty; `what` names the document's root in messages ("the verdict").
  JsonNode(const nlohmann::ordered_json& root, std::string* error) : value_(&root), error_(error) {}

  // A member that must be there.
  JsonNode At(std::string_view key) const {
    if (!IsObject()) return Missing(key);
    const auto member = value_->find(key);
    if (member == value_->end()) {
      SetError(Join(key), "is missing");
      return Missing(key);
    }
    return JsonNode(&*member, Join(key), error_);
  }

  // A member that older documents lack: null where it is absent.
  JsonNode Find(std::string_view key) const {
    if (!IsObject()) return Missing(key);
    const auto member = value_->find(key);
    if (member == value_->end()) return Missing(key);
    return JsonNode(&*member, Join(key), error_);
  }

  bool IsNull() const { return value_ == nullptr || value_->is_null(); }

  std::string Text() const {
    if (value_ == nullptr) return {};
    if (!value_->is_string()) return Expected("a string"), std::string();
    return value_->get<std::string>();
  }
  std::string TextOrNull() const { return IsNull() ? std::string() : Text(); }

  // A string that must be one of `known`; the same, or null for none.
  std::string OneOf(const std::vector<std::string_view>& known) const {
    std::string text = Text();
    if (value_ == nullptr || !value_->is_string()) return text;
    for (const std::string_view name : known)
      if (text == name) return text;
    Refuse(text, known);
    return {};
  }
  std::string OneOfOrNull(const std::vector<std::string_view>& known) const {
    return IsNull() ? std::string() : OneOf(known);
  }

  bool Boolean() const {
    if (value_ == nullptr) return false;
    if (!value_->is_boolean()) return Expected("true or false"), false;
    return value_->get<bool>();
  }

  // Null reads as NaN: that is how numbers that JSON cannot hold were written.
  double NumberOrZero() const { return IsNull() ? 0 : Number(); }
  double Number() const {
    if (value_ == nullptr) return 0;
    if (value_->is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value_->is_number()) return Expected("a number or null"), 0;
    return value_->get<double>();
  }

  template <typename Integer>
  Integer Whole() const {
    if (value_ == nullptr) return 0;
    if (value_->is_number_unsigned()) {
      const auto number = value_->get<uint64_t>();
      if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
    } else if (value_->is_number_integer()) {
      const auto number = value_->get<int64_t>();
      if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
    } else {
      return Expected("a whole number"), Integer{0};
    }
    SetError(path_, fmt::format("is out of range: {}", value_->dump()));
    return 0;
  }

  // A 64-bit number as decimal text.
  uint64_t WholeText() const {
    const std::string text = Text();
    if (value_ == nullptr || !value_->is_string()) return 0;
    uint64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
    Expected("a whole number below 2^64, as text");
    return 0;
  }

  // Calls visit(node) for each element, in order; an array of `count` elements where count is
  // given.
  template <typename Visit>
  void ForEach(Visit visit, size_t count = SIZE_MAX) const {
    if (value_ == nullptr) return;
    if (!value_->is_array()) return Expected("an array");
    if (count != SIZE_MAX && value_->size() != count)
      return Expected(fmt::format("an array of {}", count));
    for (size_t i = 0; i < value_->size() && error_->empty(); ++i)
      visit(JsonNode(&(*value_)[i], fmt::format("{}[{}]", path_, i), error_));
  }

  // Calls visit(key, node) for each member.
  template <typename Visit>
  void ForEachMember(Visit visit) const {
    if (!IsObject()) return;
    for (const auto& [key, member] : value_->items()) {
      if (!error_->empty()) return;
      visit(key, JsonNode(&member, Join(key), error_));
    }
  }

 private:
  JsonNode(const nlohmann::ordered_json* value, std::string path, std::string* error)
      : value_(value), path_(std::move(path)), error_(error) {}

  bool IsObject() const {
    if (value_ == nullptr) return false;
    if (!value_->is_object()) return Expected("an object"), false;
    return true;
  }
  JsonNode Missing(std::string_view key) const { return JsonNode(nullptr, Join(key), error_); }
  std::string Join(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  void SetError(std::string_view path, std::string_view problem) const {
    if (error_->empty())
      *error_ = fmt::format("{} {}", path.empty() ? "the document" : path, problem);
  }
  void Expected(std::string_view what) const {
    SetError(path_, fmt::format("must be {}, but is {}", what, Describe()));
  }
  std::string Describe() const {
    if (value_->is_array()) return fmt::format("an array of {}", value_->size());
    if (value_->is_object()) return "an object";
    if (value_->is_null()) return "null";
    constexpr size_t kShownMax = 40;
    std::string text =
        value_->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (text.size() > kShownMax) text = "a long string";
    return text;
  }
  void Refuse(const std::string& text, const std::vector<std::string_view>& known) const {
    std::string names;
    for (const std::string_view name : known)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    SetError(path_, fmt::format("is \"{}\", which is none of: {}", text.substr(0, 40), names));
  }

  const nlohmann::ordered_json* value_ = nullptr;  // null below a failure
  std::string path_;
  std::string* error_;
};

}  // namespace assay
