#include "correctness/mutants.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay {
namespace {

constexpr size_t kMutantsMax = 4096;

}  // namespace

Result<MutantCatalog> ParseMutants(const std::string& text) {
  MutantCatalog catalog;
  try {
    const auto document = nlohmann::json::parse(text);
    for (const auto& item : document.at("operators")) {
      if (catalog.operators.size() == kMutantsMax) break;
      catalog.operators.push_back(
          {.name = item.at("name").get<std::string>(), .line = item.at("line").get<int>()});
    }
    for (const auto& item : document.at("mutants")) {
      if (catalog.mutants.size() == kMutantsMax) break;
      MutantRecord mutant;
      mutant.family = item.at("family").get<std::string>();
      mutant.subject = item.at("subject").get<std::string>();
      mutant.words = item.at("words").get<std::string>();
      mutant.operator_number = item.at("operator").get<int>();
      if (mutant.operator_number >= std::ssize(catalog.operators)) mutant.operator_number = -1;
      catalog.precisions.push_back(item.at("precision").get<std::string>());
      catalog.time_shares.push_back(item.at("time_share").get<double>());
      catalog.mutants.push_back(std::move(mutant));
    }
    for (const auto& item : document.at("mends"))
      catalog.mends.push_back(
          {item.at("kind").get<uint64_t>(), item.at("words").get<std::string>()});
    catalog.left_out = document.at("left_out").get<int>();
  } catch (const nlohmann::json::exception& exception) {
    return EnvironmentError(
        fmt::format("the reference host's list of mutants cannot be read: {}", exception.what()));
  }
  return catalog;
}

HostResult<MutantCheck> CheckMutant(Oracle& oracle, size_t mutant, uint32_t master,
                                    std::string_view kind, const CompareRule& rule,
                                    std::span<const ReferenceError> errors) {
  const uint32_t target = oracle.slots_max() - 1;
  const auto made = oracle.Mutate(mutant, master, target);
  if (!made) return std::unexpected(made.error());
  MutantCheck found{{}, made->changed};
  if (made->threw) {
    found.check.passed = false;
    found.check.error_ratio = std::numeric_limits<double>::infinity();
  }
  if (!made->changed || made->threw) return found;
  HintContext context;
  context.draw_kind = kind;
  found.check = CheckOutputs(oracle, oracle.outputs(target), master, true, rule, errors, context);
  if (found.check.trouble) return std::unexpected(std::move(*found.check.trouble));
  return found;
}

}  // namespace assay
