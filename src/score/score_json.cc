#include "score/score_json.h"

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;  // keeps `schema` first

Json RatioOrNull(double ratio) { return ratio > 0 ? Json(ratio) : Json(); }
Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json ToJson(const Share& share) {
  return {{"count", share.count},
          {"share", share.value()},
          {"interval", Json::array({share.low, share.high})}};
}

Json ToJson(const std::optional<Interval>& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json();
}

Json ToJson(const AtK& at_k) {
  Json fast_p = Json::array();
  for (const FastPAtK& row : at_k.fast_p)
    fast_p.push_back({{"p", row.p}, {"plain", row.plain}, {"certified", row.certified}});
  return {{"k", at_k.k},
          {"pass", at_k.pass},
          {"pass_interval", ToJson(at_k.pass_interval)},
          {"best_speedup", at_k.best_speedup},
          {"best_speedup_interval", ToJson(at_k.best_interval)},
          {"fast_p", fast_p}};
}

Json ToJson(const std::optional<Coverage>& coverage) {
  if (!coverage) return {};
  Json rows = Json::array();
  for (const CoverageRow& row : coverage->rows)
    rows.push_back(
        {{"k", row.k}, {"measured", row.measured}, {"common", row.common}, {"fitted", row.fitted}});
  const CoverageFit& fit = coverage->fit;
  return {{"problems", coverage->problems},
          {"correct_attempts", coverage->correct},
          {"out_of_reach", fit.out_of_reach},
          {"out_of_reach_interval", Json::array({fit.low, fit.high})},
          {"alpha", fit.alpha},
          {"beta", fit.beta},
          {"log_likelihood", fit.log_likelihood},
          {"log_likelihood_in_reach", fit.log_likelihood_in_reach},
          {"rows", rows}};
}

Json ToJson(const std::vector<LearningPoint>& curve) {
  Json rounds = Json::array();
  for (const LearningPoint& point : curve)
    rounds.push_back({{"round", point.round},
                      {"correct", point.correct},
                      {"certified", point.certified},
                      {"mean_speedup", point.mean_speedup}});
  return rounds;
}

Json ToJson(const Repeats& repeats) {
  Json json = {{"pairs", repeats.pairs}, {"improved", repeats.improved}};
  const Share share = ShareOf(repeats.improved, repeats.pairs);
  json["interval"] = repeats.pairs > 0 ? Json::array({share.low, share.high}) : Json();
  return json;
}

Json StagesOf(const FunnelRow& row) {
  Json stages = Json::object();
  for (const Stage stage : kAllStages) stages[std::string(StageName(stage))] = row.at(stage);
  return stages;
}

Json FunnelOf(const Score& score) {
  Json by_level = Json::array();
  for (const FunnelRow& row : score.by_level) {
    Json json = Json::object();
    json["level"] = row.level;
    json.update(StagesOf(row));
    by_level.push_back(json);
  }
  Json by_mechanism = Json::array();
  for (const FunnelRow& row : score.by_mechanism) {
    Json json = Json::object();
    json["mechanism"] = TextOrNull(row.mechanism);
    json.update(StagesOf(row));
    by_mechanism.push_back(json);
  }
  return {{"all", StagesOf(score.funnel)}, {"by_level", by_level}, {"by_mechanism", by_mechanism}};
}

Json ToJson(const Apart& apart) {
  return {{"prepared_weights",
           {{"attempts", apart.prepared},
            {"problems", apart.prepared_problems},
            {"problems_without_speed", apart.prepared_untimed}}},
          {"right_on_ordinary_values", {{"attempts", apart.right_on_ordinary}}},
          {"differ_on_special_values", {{"attempts", apart.differ_on_special}}}};
}

Json ToJson(const Fingerprint& fingerprint) {
  Json rows = Json::array();
  for (const FingerprintRow& row : fingerprint.rows)
    rows.push_back({{"outcome", OutcomeName(row.outcome)},
                    {"kind", TextOrNull(row.kind)},
                    {"count", row.count},
                    {"by_group", row.by_group}});
  return {{"by", TextOrNull(fingerprint.by)}, {"groups", fingerprint.groups}, {"rows", rows}};
}

// The attempt that stands for a problem.
Json ToJson(const Attempt& best) {
  const bool timed = best.speedup > 0 && best.ci_low > 0 && best.ci_high > 0;
  return {{"outcome", OutcomeName(best.outcome)},
          {"kind", TextOrNull(best.kind)},
          {"speedup", RatioOrNull(best.speedup)},
          {"interval", timed ? Json::array({best.ci_low, best.ci_high}) : Json()},
          {"time_ns", RatioOrNull(best.time_ns)},
          {"message", TextOrNull(best.message)}};
}

Json ToJson(const Curve& curve) {
  Json steps = Json::array();
  for (const CurveStep& step : curve) steps.push_back(Json::array({step.p, step.count}));
  return steps;
}

Json ToJson(const ProblemScore& score) {
  return {{"name", score.problem.name},
          {"level", score.problem.level},
          {"mechanism", TextOrNull(score.problem.mechanism)},
          {"attempts", score.attempts},
          {"correct", score.correct},
          {"prepared_weights", score.prepared},
          {"stage", StageName(score.stage)},
          {"speedup", RatioOrNull(score.speedup)},
          {"certified_speedup", RatioOrNull(score.certified_speedup)},
          {"best", score.attempts > 0 ? ToJson(score.best) : Json()}};
}

Json ToJson(const SetAside& set_aside, const std::vector<std::string>& skipped) {
  return {{"judged_again", set_aside.judged_again},
          {"not_asked", set_aside.not_asked},
          {"problems_not_asked", set_aside.problems_not_asked},
          {"against", set_aside.against},
          {"skipped", skipped}};
}

}  // namespace

std::string ScoreToJson(const Score& score, const std::vector<std::string>& skipped) {
  Json machines = Json::array();
  for (const MachineCount& machine : score.machines)
    machines.push_back({{"cpu", machine.cpu},
                        {"cores", machine.cores},
                        {"threads", machine.threads},
                        {"pytorch", machine.pytorch},
                        {"verdicts", machine.verdicts}});
  Json fast_p = Json::array();
  for (const FastPRow& row : score.fast_p)
    fast_p.push_back(
        {{"p", row.p}, {"plain", ToJson(row.plain)}, {"certified", ToJson(row.certified)}});
  Json at_k = Json::array(), left_out = Json::array(), problems = Json::array();
  for (const AtK& row : score.at_k) at_k.push_back(ToJson(row));
  for (const AtKLeftOut& row : score.at_k_left_out)
    left_out.push_back({{"k", row.k}, {"problem", row.problem}, {"attempts", row.attempts}});
  for (const ProblemScore& problem : score.problems) problems.push_back(ToJson(problem));
  const Json document = {
      {"schema", kScoreSchema},
      {"asked", score.asked},
      {"judged", score.judged},
      {"attempts", score.attempts},
      {"not_judged", score.NotJudged()},
      {"baseline", TextOrNull(score.baseline)},
      {"judged_from", TextOrNull(score.from)},
      {"judged_to", TextOrNull(score.to)},
      {"machines", machines},
      {"correct", ToJson(score.correct)},
      {"fast_p", fast_p},
      {"mean_speedup",
       {{"correct", RatioOrNull(score.mean_correct)},
        {"correct_problems", score.mean_correct_problems},
        {"clamped", RatioOrNull(score.mean_clamped)}}},
      {"at_k", at_k},
      {"at_k_left_out", left_out},
      {"coverage", ToJson(score.coverage)},
      {"learning", ToJson(score.learning)},
      {"judged_again", ToJson(score.repeats)},
      {"apart", ToJson(score.apart)},
      {"funnel", FunnelOf(score)},
      {"fingerprint", ToJson(score.fingerprint)},
      {"curve", {{"plain", ToJson(score.plain)}, {"certified", ToJson(score.certified)}}},
      {"problems", problems},
      {"set_aside", ToJson(score.set_aside, skipped)},
  };
  // Names come from files that anybody may have written: bytes that are not UTF-8 become U+FFFD.
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay
