#include "propose/models.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/files.h"
#include "base/toml.h"
#include "propose/models_toml.h"

namespace assay {
namespace {

constexpr size_t kTableBytesMax = size_t{1} << 20;

std::unexpected<Error> At(const std::string& path, const toml::source_region& place,
                          std::string_view what) {
  return UsageError(
      fmt::format("{} line {}: {}", path, static_cast<unsigned>(place.begin.line), what));
}

// Each returns false if the value is not of its kind, or out of its bounds.
bool Read(const toml::node& node, bool& value) {
  const auto read = node.value_exact<bool>();
  value = read.value_or(value);
  return read.has_value();
}
bool Read(const toml::node& node, double& value) {
  const auto read = node.is_number() ? node.value<double>() : std::nullopt;
  value = read.value_or(value);
  return read.has_value() && std::isfinite(value) && value >= 0;
}
bool Read(const toml::node& node, int64_t& value) {
  const auto read = node.value_exact<int64_t>();
  value = read.value_or(value);
  return read.has_value() && value >= 0;
}
bool Read(const toml::node& node, std::string& value) {
  const auto read = node.value_exact<std::string>();
  value = read.value_or(value);
  return read.has_value() && !value.empty();
}

constexpr std::string_view kFields =
    "api (openai, anthropic), name, temperature (true, false), temperature_max, seed (true, "
    "false), stream_usage (true, false), tokens_field, answer_tokens_max, usd_in, usd_out";

}  // namespace

Result<ModelTable::Rows> ModelTable::Parse(std::string_view text, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, path));
  for (const auto& [key, node] : table)
    if (key != "model" || !node.is_array_of_tables())
      return At(path, key.source(), "a table of models has [[model]] alone");
  Rows rows;
  if (table.empty()) return rows;
  for (const toml::node& node : *table["model"].as_array()) {
    Row row;
    for (const auto& [key, value] : *node.as_table()) {
      const bool fits = key == "api"                 ? Read(value, row.api)
                        : key == "name"              ? Read(value, row.name)
                        : key == "temperature"       ? Read(value, row.facts.takes_temperature)
                        : key == "temperature_max"   ? Read(value, row.facts.temperature_max)
                        : key == "seed"              ? Read(value, row.facts.takes_seed)
                        : key == "stream_usage"      ? Read(value, row.facts.takes_stream_usage)
                        : key == "tokens_field"      ? Read(value, row.facts.tokens_field)
                        : key == "answer_tokens_max" ? Read(value, row.facts.answer_tokens_max)
                        : key == "usd_in"            ? Read(value, row.facts.usd_in)
                        : key == "usd_out"           ? Read(value, row.facts.usd_out)
                                                     : false;
      if (!fits)
        return At(path, key.source(),
                  fmt::format("'{}' is no field, or not its value; a [[model]] has: {}", key.str(),
                              kFields));
    }
    if (row.name.empty() || (row.api != "openai" && row.api != "anthropic"))
      return At(path, node.source(),
                "a [[model]] needs its name, and api = \"openai\" or \"anthropic\"");
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<ModelTable> ModelTable::Load(const std::string& path) {
  ModelTable table;
  auto built_in = Parse(kBuiltInModels, "the built-in table of models");
  ASSAY_CHECK(built_in);
  table.built_in_ = *std::move(built_in);
  if (path.empty()) return table;
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTableBytesMax));
  ASSAY_ASSIGN_OR_RETURN(table.users_, Parse(text, path));
  return table;
}

const ModelTable::Row* ModelTable::Best(const Rows& rows, std::string_view api,
                                        std::string_view model) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    std::string_view name = row.name;
    const bool open = name.ends_with('*');
    if (open) name.remove_suffix(1);
    if (row.api != api || !(open ? model.starts_with(name) : model == name)) continue;
    // An exact name is as long as the model's, so that at equal length the last one decides.
    if (best == nullptr || row.name.size() >= best->name.size() || !open) best = &row;
    if (!open) return best;
  }
  return best;
}

ModelFacts ModelTable::Find(std::string_view api, std::string_view model) const {
  const Row* row = Best(users_, api, model);
  if (row == nullptr) row = Best(built_in_, api, model);
  return row == nullptr ? ModelFacts() : row->facts;
}

}  // namespace assay
