#include "cli/archive_feedback.h"

#include <fmt/format.h>

#include "builders/native_code.h"
#include "doctor/doctor.h"
#include "model/verdict_json.h"
#include "search/feedback.h"

namespace assay {

Result<std::string> FeedbackOfRecord(const Record& record, Store& store) {
  if (record.facts.kind != RecordKind::kVerdict)
    return UsageError(fmt::format("record {} is a {}: only a verdict has feedback", record.sequence,
                                  RecordKindName(record.facts.kind)));
  ASSAY_ASSIGN_OR_RETURN(const std::string content, store.Get(record.content));
  ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(content));
  std::string source;
  NativeCode code;
  if (!record.source.empty()) {
    ASSAY_ASSIGN_OR_RETURN(source, store.Get(record.source));
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource candidate,
                           CandidateFromText(verdict.candidate.path, source));
    if (verdict.speed) {
      ASSAY_ASSIGN_OR_RETURN(code, ReadNativeCode(candidate, {}, {}));
    }
  }
  std::string notice;
  const MachineProfile machine = LoadMachineProfile(&notice);
  return FeedbackText(FeedbackOf({verdict, source, &code, &machine}));
}

}  // namespace assay
