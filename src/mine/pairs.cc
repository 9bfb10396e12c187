#include "mine/pairs.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "score/attempt.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Json NumberOrNull(double number) { return number > 0 ? Json(number) : Json(); }

const Verdict* VerdictOn(const Mined& mined, const std::vector<RunRow>& rows) {
  const std::string hash = Sha256Hex(mined.code.triton_code);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (!row->verdict || std::filesystem::path(row->candidate).stem() != mined.name) continue;
    const Verdict& verdict = *row->verdict;
    if (verdict.candidate.hash == hash && verdict.problem.hash == mined.hash &&
        verdict.problem.set == mined.set)
      return &verdict;
  }
  return nullptr;
}

Json VerdictFacts(const Verdict& verdict) {
  const Attempt attempt = AttemptOf(verdict);
  Json facts = {{"id", verdict.id},
                {"outcome", OutcomeName(verdict.outcome)},
                {"speedup", NumberOrNull(attempt.speedup)},
                {"interval", attempt.ci_low > 0 && attempt.ci_high > 0
                                 ? Json::array({attempt.ci_low, attempt.ci_high})
                                 : Json()},
                {"certified_speedup", NumberOrNull(attempt.certified_speedup)},
                {"baseline", verdict.speed ? Json(verdict.speed->headline) : Json()},
                {"seed", std::to_string(verdict.seed)},
                {"device", verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu},
                {"judged", verdict.created}};
  // The share of its time that it spends in libraries, as the judge saw it.
  facts["library_time"] = verdict.libraries ? Json(verdict.libraries->foreign_share) : Json();
  return facts;
}

Json RowOf(const Mined& mined, const Verdict& verdict, size_t number) {
  const MinedCode& code = mined.code;
  return {{"entry_point", code.entry_point},
          {"python_code", code.python_code},
          {"triton_code", code.triton_code},
          {"original_triton_code", code.original_triton_code},
          {"repo_name", ""},
          {"repo_link", ""},
          {"module_name", mined.problem},
          {"licenses", Json::array()},
          {"stars", 0},
          {"sha", mined.hash},
          {"uuid", number},
          {"verdict", VerdictFacts(verdict)},
          {"mined",
           {{"mode", mined.mode},
            {"size", mined.size},
            {"set", mined.set},
            {"kernels", code.kernels},
            {"library_calls", code.libraries},
            {"versions", code.versions},
            {"device", mined.device},
            {"date", mined.date}}}};
}

}  // namespace

MinedPairs PairsOf(const std::vector<Mined>& mined, const std::vector<RunRow>& rows) {
  MinedPairs pairs;
  for (const Mined& each : mined) {
    if (!each.refusal.empty()) continue;
    const Verdict* verdict = VerdictOn(each, rows);
    if (verdict == nullptr || !IsCorrect(verdict->outcome)) {
      ++pairs
            .others[verdict == nullptr ? "not judged" : std::string(OutcomeName(verdict->outcome))];
      continue;
    }
    if (verdict->outcome == Outcome::kFaster) ++pairs.faster;
    pairs.lines.push_back(RowOf(each, *verdict, pairs.lines.size())
                              .dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return pairs;
}

}  // namespace assay
