#include "web/class_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "serve/moment.h"
#include "serve/words.h"
#include "web/replies.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Json TimeOrNull(int64_t utc_s) { return utc_s == 0 ? Json() : Json(UtcText(utc_s)); }

Result<void> ReadNumber(const Json& object, const char* name, int64_t* number) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_number_integer())
    return UsageError(fmt::format("{} must be a whole number", name));
  *number = found->get<int64_t>();
  return {};
}

std::string_view FindingName(FindingKind kind) {
  return kind == FindingKind::kMissing      ? "missing"
         : kind == FindingKind::kChanged    ? "changed"
         : kind == FindingKind::kSuspicious ? "suspicious"
                                            : "note";
}

Json SpeedJson(double value, double low, double high) {
  if (value <= 0) return {};
  return {{"speedup", value}, {"ci_low", low}, {"ci_high", high}};
}

Json LineJson(const GradedLine& line) {
  return {{"text", line.line.text}, {"points", line.line.points}, {"evidence", line.line.evidence},
          {"met", line.met},        {"found", line.found},        {"verdicts", line.verdicts}};
}

}  // namespace

Json AccountJson(const Account& account) {
  return {{"id", account.id},
          {"name", account.name},
          {"role", RoleName(account.role)},
          {"class", account.class_id == 0 ? Json() : Json(account.class_id)}};
}

Json ClassJson(const Class& of, int64_t now_s) {
  return {{"id", of.id},
          {"name", of.terms.name},
          {"deadline", TimeOrNull(of.terms.deadline_s)},
          {"over", IsOver(of, now_s)},
          {"finals", TimeOrNull(of.finals_s)},
          {"jobs_a_day", of.terms.jobs_a_day},
          {"worklogs_a_day", of.terms.worklogs_a_day},
          {"own_rubric", !of.terms.rubric.empty()},
          {"made", TimeOrNull(of.made_s)}};
}

Json InvitationJson(const Invitation& invitation, int64_t now_s) {
  return {{"id", invitation.id},
          {"role", RoleName(invitation.role)},
          {"account", invitation.account == 0 ? Json() : Json(invitation.account)},
          {"uses", invitation.uses_max},
          {"used", invitation.used},
          {"made", TimeOrNull(invitation.made_s)},
          {"ends", TimeOrNull(invitation.ends_s)},
          {"open", !RefuseInvitation(invitation, now_s).has_value()}};
}

Json FinalistJson(const FinalistRow& row) {
  return {{"account", row.account.name},
          {"problem", row.best.problem},
          {"size", row.best.size},
          {"best",
           {{"job", row.best.id},
            {"verdict", row.best.verdict},
            {"speed", SpeedJson(row.best_speedup, row.best_low, row.best_high)}}},
          {"final",
           {{"job", row.final.id},
            {"state", JobStateName(row.final.state)},
            {"outcome", row.final.outcome},
            {"verdict", row.final.verdict},
            {"spot_check_disagrees", row.final_differs},
            {"speed", SpeedJson(row.final_speedup, row.final_low, row.final_high)}}}};
}

Json WorklogJson(const WorklogEntry& entry) {
  return {{"id", entry.id},
          {"author", entry.author.name},
          {"class", entry.class_id == 0 ? Json() : Json(entry.class_id)},
          {"worklog", entry.worklog},
          {"problem", entry.problem},
          {"uploads", entry.uploads},
          {"first_sent", TimeOrNull(entry.first_s)},
          {"sent", TimeOrNull(entry.sent_s)},
          {"tar_sha256", entry.tar}};
}

Json FindingsJson(std::span<const Finding> findings) {
  Json list = Json::array();
  for (const Finding& each : findings)
    list.push_back({{"kind", FindingName(each.kind)},
                    {"section", each.section ? Json(SectionTitle(*each.section)) : Json()},
                    {"text", each.text},
                    {"next", each.next.empty() ? Json() : Json(each.next)}});
  return list;
}

Json GradeJson(const GradedWorklog& graded) {
  Json buckets = Json::array();
  for (const GradedBucket& each : graded.grade.buckets) {
    Json lines = Json::array();
    for (const GradedLine& line : each.lines) lines.push_back(LineJson(line));
    buckets.push_back({{"key", each.key},
                       {"name", each.name},
                       {"points", each.points},
                       {"by_evidence", each.proposed},
                       {"mark", each.mark},
                       {"marked", each.marked},
                       {"lines", std::move(lines)}});
  }
  const KeptMarks& kept = graded.kept;
  return {{"revision", kept.revision},
          {"mentor", kept.mentor.empty() ? Json() : Json(kept.mentor)},
          {"marked", TimeOrNull(kept.marked_s)},
          {"upload", kept.upload},
          {"note", kept.marks.note},
          {"mark", graded.grade.mark},
          {"points", graded.grade.points},
          {"suspicious", graded.grade.suspicious},
          {"lifted", graded.grade.lifted},
          {"stale", graded.grade.stale},
          {"buckets", std::move(buckets)}};
}

Result<ClassTerms> ReadClassTerms(const Json& object, ClassTerms terms) {
  if (object.contains("name")) {
    ASSAY_ASSIGN_OR_RETURN(terms.name, TextField(object, "name", true));
  }
  if (object.contains("rubric")) {
    ASSAY_ASSIGN_OR_RETURN(terms.rubric, TextField(object, "rubric", false));
  }
  if (object.contains("deadline")) {
    ASSAY_ASSIGN_OR_RETURN(const std::string deadline, TextField(object, "deadline", false));
    terms.deadline_s = 0;
    if (!deadline.empty()) {
      ASSAY_ASSIGN_OR_RETURN(terms.deadline_s, ParseMoment(deadline));
    }
  }
  ASSAY_RETURN_IF_ERROR(ReadNumber(object, "jobs_a_day", &terms.jobs_a_day));
  ASSAY_RETURN_IF_ERROR(ReadNumber(object, "worklogs_a_day", &terms.worklogs_a_day));
  return terms;
}

Result<InvitationTerms> ReadInvitationTerms(const Json& object) {
  InvitationTerms terms;
  ASSAY_ASSIGN_OR_RETURN(const std::string role, TextField(object, "role", false));
  if (!role.empty()) {
    const auto known = RoleFromName(role);
    if (!known) return UsageError("role is mentor, student or machine");
    terms.role = *known;
  }
  ASSAY_ASSIGN_OR_RETURN(terms.account, TextField(object, "for", false));
  ASSAY_ASSIGN_OR_RETURN(const std::string lasts, TextField(object, "lasts", false));
  if (!lasts.empty()) {
    ASSAY_ASSIGN_OR_RETURN(terms.lasts_s, ParseDuration(lasts));
  }
  ASSAY_RETURN_IF_ERROR(ReadNumber(object, "uses", &terms.uses));
  return terms;
}

Result<GivenMarks> ReadMarks(const Json& object) {
  GivenMarks given;
  if (!object.contains("revision"))
    return UsageError("revision is missing: give the one of the marks that you saw, 0 for none");
  ASSAY_RETURN_IF_ERROR(ReadNumber(object, "revision", &given.seen.revision));
  ASSAY_RETURN_IF_ERROR(ReadNumber(object, "upload", &given.seen.upload));
  ASSAY_ASSIGN_OR_RETURN(given.marks.note, TextField(object, "note", false));
  ASSAY_ASSIGN_OR_RETURN(given.marks.lifted, TextField(object, "lift", false));
  const auto points = object.find("points");
  if (points == object.end() || points->is_null()) return given;
  if (!points->is_object()) return UsageError("points is an object: {\"depth\": 25}");
  for (const auto& [key, value] : points->items()) {
    if (value.is_null()) continue;  // by the evidence
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return UsageError(fmt::format("the points of {} are no number", key));
    given.marks.points[key] = value.get<double>();
  }
  return given;
}

}  // namespace assay
