// Classes, worklogs and marks as JSON, and out of it. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "serve/class_rules.h"
#include "serve/classes.h"
#include "serve/finals.h"
#include "serve/grades.h"

namespace assay {

nlohmann::ordered_json AccountJson(const Account& account);
nlohmann::ordered_json ClassJson(const Class& of, int64_t now_s);
nlohmann::ordered_json InvitationJson(const Invitation& invitation, int64_t now_s);
nlohmann::ordered_json FinalistJson(const FinalistRow& row);
nlohmann::ordered_json WorklogJson(const WorklogEntry& entry);
nlohmann::ordered_json FindingsJson(std::span<const Finding> findings);
nlohmann::ordered_json GradeJson(const GradedWorklog& graded);

// `terms` with the fields that are there. Errors (kUsage): one is of another kind.
Result<ClassTerms> ReadClassTerms(const nlohmann::ordered_json& object, ClassTerms terms);
Result<InvitationTerms> ReadInvitationTerms(const nlohmann::ordered_json& object);

struct GivenMarks {
  Marks marks;
  SeenWorklogState seen;
};
Result<GivenMarks> ReadMarks(const nlohmann::ordered_json& object);

}  // namespace assay
