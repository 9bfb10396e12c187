#include "values/work_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr size_t kLinesMax = wire::kArgumentsMax;
constexpr size_t kOperatorsMax = 4096;

constexpr auto kMatrixOperators =
    std::to_array<std::string_view>({"mm", "bmm", "addmm", "baddbmm", "linear", "convolution",
                                     "_convolution", "mkldnn_rnn_layer", "_cudnn_rnn"});

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> Lines(const Json& document, const char* key) {
  std::vector<std::string> lines;
  for (const Json& line : document.at(key)) {
    if (lines.size() == kLinesMax) break;
    lines.push_back(line.get<std::string>().substr(0, 200));
  }
  return lines;
}

// A count: finite and not negative, else 0.
double Figure(const Json& object, const char* key) {
  const double value = object.at(key).get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

std::optional<double> SuiteFigure(const Json& figures, const char* key) {
  if (!figures.contains(key)) return std::nullopt;
  return Figure(figures, key);
}

}  // namespace

Result<WorkAccount> ParseWorkAccount(std::string_view json) {
  WorkAccount account;
  try {
    const Json document = Json::parse(json);
    if (document.empty()) return account;
    account.inputs = Lines(document, "inputs");
    account.parameters = Lines(document, "parameters");
    account.outputs = Lines(document, "outputs");
    account.suite_operations = SuiteFigure(document.at("figures"), "flops");
    account.suite_bytes = SuiteFigure(document.at("figures"), "bytes");
    account.forward_known = document.at("forward_known").get<bool>();
    account.peak_bytes = Figure(document, "peak_bytes");
    for (const Json& item : document.at("operators")) {
      if (account.operators.size() == kOperatorsMax) break;
      account.operators.push_back({item.at("name").get<std::string>().substr(0, 100),
                                   Figure(item, "calls"), Figure(item, "operations"),
                                   Figure(item, "read_bytes"), Figure(item, "written_bytes")});
    }
  } catch (const Json::exception& exception) {
    return EnvironmentError(
        fmt::format("the reference host accounts for the problem in a form that cannot be read: {}",
                    exception.what()));
  }
  return account;
}

double CountedOperations(const WorkAccount& account) {
  return std::accumulate(
      account.operators.begin(), account.operators.end(), 0.0,
      [](double sum, const OperatorWork& work) { return sum + work.operations; });
}

double UnfusedBytes(const WorkAccount& account) {
  return std::accumulate(account.operators.begin(), account.operators.end(), 0.0,
                         [](double sum, const OperatorWork& work) {
                           return sum + work.read_bytes + work.written_bytes;
                         });
}

uint64_t LibrariesOf(const WorkAccount& account) {
  uint64_t libraries = 0;
  for (const OperatorWork& work : account.operators) {
    const bool convolves = work.name.ends_with("convolution") || work.name == "_cudnn_rnn";
    if (convolves) libraries |= wire::kUsesConvolutions;
    if (!convolves && Contains(kMatrixOperators, work.name)) libraries |= wire::kUsesProducts;
  }
  return libraries;
}

double MatrixShare(const WorkAccount& account) {
  const double all = CountedOperations(account);
  if (!account.forward_known || !(all > 0)) return 1;
  double matrix = 0;
  for (const OperatorWork& work : account.operators)
    if (Contains(kMatrixOperators, work.name) || work.name.starts_with("_scaled_dot_product"))
      matrix += work.operations;
  return matrix / all;
}

Work WorkOf(const ProblemDescription& description, const WorkAccount& account) {
  uint64_t read = 0, written = 0;
  for (const wire::ArgumentSpec& argument : description.arguments) {
    // Of a changed input forward may read as little as nothing.
    if (argument.role == wire::Role::kOutput)
      written += argument.twin != 0 ? argument.used_bytes : argument.size_bytes;
    else if (argument.twin == 0)
      read += argument.used_bytes != 0 ? argument.used_bytes : argument.size_bytes;
  }
  return WorkOf(read, written, account);
}

Work WorkOf(uint64_t read_bytes, uint64_t written_bytes, const WorkAccount& account) {
  Work work;
  if (account.suite_operations) {
    work.operations = *account.suite_operations;
    work.operations_from = "suite";
  } else if (account.forward_known && !account.operators.empty()) {
    work.operations = CountedOperations(account);
    work.operations_from = "counted";
  } else {
    work.operations_from = "unknown";
  }
  work.bytes_from = account.suite_bytes ? "suite" : "signature";
  work.bytes = account.suite_bytes.value_or(static_cast<double>(read_bytes + written_bytes));
  work.written_bytes = std::min(static_cast<double>(written_bytes), work.bytes);
  work.unfused_bytes = UnfusedBytes(account);
  work.peak_bytes = account.peak_bytes;
  return work;
}

}  // namespace assay
