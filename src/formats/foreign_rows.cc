#include "formats/foreign_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = size_t{1} << 30;

Result<std::vector<Json>> ParseLines(const std::string& text, const std::string& path) {
  std::vector<Json> rows;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    ++number;
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json row = Json::parse(line, nullptr, false);
    if (!row.is_object())
      return UsageError(fmt::format("{} line {} is no JSON object", path, number));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<Json>> ParseDocument(const std::string& text, const std::string& path) {
  const Json document = Json::parse(text, nullptr, false);
  // A stream of objects is no document, and is called .json all the same.
  if (document.is_discarded()) return ParseLines(text, path);
  std::vector<Json> rows;
  const auto take = [&](const Json& list, const std::string& level) {
    for (const Json& item : list) {
      if (!item.is_object()) continue;
      rows.push_back(item);
      if (!level.empty() && !item.contains("level_id")) rows.back()["level_id"] = level;
    }
  };
  if (document.is_array()) {
    take(document, "");
    return rows;
  }
  if (!document.is_object()) return UsageError(fmt::format("{} holds no rows", path));
  bool lists = !document.empty();
  for (const auto& [key, value] : document.items()) lists = lists && value.is_array();
  if (!lists) return std::vector<Json>{document};
  for (const auto& [key, value] : document.items()) take(value, key);
  return rows;
}

}  // namespace

Result<std::vector<Json>> ParseCsv(std::string_view text) {
  std::vector<std::vector<std::string>> table(1);
  std::string field;
  bool quoted = false, begun = false;
  const auto end_field = [&] {
    table.back().push_back(std::move(field));
    field.clear();
    begun = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = begun = true;
    } else if (c == ',') {
      end_field();
      begun = true;
    } else if (c == '\n') {
      if (!field.empty() && field.back() == '\r') field.pop_back();
      if (begun || !field.empty() || !table.back().empty()) end_field();
      if (!table.back().empty()) table.emplace_back();
    } else {
      field += c;
    }
  }
  if (quoted) return UsageError("a quoted field has no end");
  if (begun || !field.empty()) end_field();
  if (table.back().empty()) table.pop_back();
  if (table.empty()) return UsageError("the file is empty: its first line names the columns");
  std::vector<Json> rows;
  for (size_t line = 1; line < table.size(); ++line) {
    if (table[line].size() != table[0].size())
      return UsageError(fmt::format("row {} has {} fields, and the first line {}", line,
                                    table[line].size(), table[0].size()));
    Json row = Json::object();
    for (size_t i = 0; i < table[0].size(); ++i) row[table[0][i]] = table[line][i];
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<Json>> ReadForeignRows(const std::string& path, const ForeignReader& read) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  if (path.ends_with(".csv")) {
    auto rows = ParseCsv(text);
    if (!rows) return UsageError(fmt::format("{}: {}", path, rows.error().message));
    return rows;
  }
  if (path.ends_with(".parquet")) {
    ASSAY_ASSIGN_OR_RETURN(const std::string lines, read("parquet", text));
    return ParseLines(lines, path);
  }
  if (path.ends_with(".jsonl")) return ParseLines(text, path);
  if (path.ends_with(".json")) return ParseDocument(text, path);
  return UsageError(fmt::format("{}: give a .json, .jsonl, .csv or .parquet file", path));
}

std::string TextOf(const Json& row, std::string_view key) {
  const auto found = row.find(std::string(key));
  if (found == row.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

Json NumberOf(const Json& row, std::string_view key) {
  const std::string text = TextOf(row, key);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return nullptr;
  return number;
}

}  // namespace assay
