// Reads JSON that may come from anywhere: every access names its field. The library is in
// json_node.cc alone, since it compiles slowly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

// A place in a document, with its path. The first failure is kept in the shared error, and every
// later access gives a default: a reader asks once, at its end. Both must outlive it. Never throws.
class JsonNode {
 public:
  // A member that must be there.
  JsonNode At(std::string_view key) const;
  // A member that older documents lack: null where it is absent.
  JsonNode Find(std::string_view key) const;
  bool IsNull() const;
  // No such member: the document is older.
  bool IsAbsent() const { return value_ == nullptr; }

  std::string Text() const;
  std::string TextOrNull() const { return IsNull() ? std::string() : Text(); }
  // A string that must be one of `known`; the same, or null for none.
  std::string OneOf(const std::vector<std::string_view>& known) const;
  std::string OneOfOrNull(const std::vector<std::string_view>& known) const {
    return IsNull() ? std::string() : OneOf(known);
  }
  // What `from_name` makes of a string; `otherwise`, and a failure, where it knows none.
  template <typename Code>
  Code NamedBy(std::optional<Code> (*from_name)(std::string_view), Code otherwise) const {
    const std::string name = Text();
    const std::optional<Code> code = from_name(name);
    if (!code) RefuseName(name);
    return code.value_or(otherwise);
  }
  bool Boolean() const;
  // A number that is written without a fraction.
  bool IsWhole() const;
  // Null reads as NaN: that is how numbers that JSON cannot hold were written.
  double Number() const;
  double NumberOrZero() const { return IsNull() ? 0 : Number(); }
  template <typename Integer>
  Integer Whole() const {
    const auto number = ReadWhole();
    if (!number) return 0;
    // Either half holds the number; the other one is 0.
    if (number->first == 0 && std::in_range<Integer>(number->second))
      return static_cast<Integer>(number->second);
    if (number->second == 0 && std::in_range<Integer>(number->first))
      return static_cast<Integer>(number->first);
    OutOfRange();
    return 0;
  }
  // A 64-bit number as decimal text.
  uint64_t WholeText() const;

  // Calls visit(node) for each element, in order; an array of `count` elements where count is
  // given.
  void ForEach(const std::function<void(const JsonNode&)>& visit, size_t count = SIZE_MAX) const;
  // Calls visit(key, node) for each member.
  void ForEachMember(const std::function<void(const std::string&, const JsonNode&)>& visit) const;

 private:
  friend class JsonDocument;
  JsonNode(const void* value, std::string path, std::string* error)
      : value_(value), path_(std::move(path)), error_(error) {}

  // A negative number and 0, or 0 and one that is not; nullopt after a failure.
  std::optional<std::pair<int64_t, uint64_t>> ReadWhole() const;
  void OutOfRange() const;
  bool IsObject() const;
  JsonNode Missing(std::string_view key) const { return JsonNode(nullptr, Join(key), error_); }
  std::string Join(std::string_view key) const;
  void SetError(std::string_view path, std::string_view problem) const;
  void Expected(std::string_view what) const;
  std::string Describe() const;
  void RefuseName(const std::string& name) const;
  void Refuse(const std::string& text, const std::vector<std::string_view>& known) const;

  const void* value_ = nullptr;  // the library's; null below a failure
  std::string path_;
  std::string* error_;
};

class JsonDocument {
 public:
  // Errors (kUsage) are the library's words on what is no JSON.
  static Result<JsonDocument> Parse(std::string_view text);
  JsonDocument(JsonDocument&&) noexcept;
  ~JsonDocument();
  // `error` must be empty.
  JsonNode Root(std::string* error) const;

 private:
  struct Value;
  explicit JsonDocument(std::unique_ptr<Value> value);

  std::unique_ptr<Value> value_;
};

}  // namespace assay
