#include "web/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/utf8.h"

namespace assay {
namespace {

constexpr size_t kNameBytesMax = 120, kKeyBytesMax = 100, kSettingsMax = 20;
constexpr size_t kVerdictIdBytesMax = 64;
constexpr std::array kEndings{".cpp", ".cc", ".c", ".cu", ".py"};

SubmissionAnswer Refused(int status, std::string why) {
  SubmissionAnswer answer;
  answer.status = status;
  answer.why = std::move(why);
  return answer;
}

// A file's name, as it may stand on a runner's disk.
bool IsFileName(const std::string& name) {
  const bool plain = name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._+-") == std::string::npos;
  return plain && !name.empty() && name.size() <= kNameBytesMax && name.front() != '.' &&
         name.front() != '-' &&
         std::ranges::any_of(kEndings, [&](const char* ending) { return name.ends_with(ending); });
}

// Why the fields cannot be judged; an empty text: they can.
SubmissionAnswer Check(const Hall& hall, const SubmissionFields& fields) {
  if (fields.source.size() > kSourceBytesMax)
    return Refused(413, fmt::format("the source is over {} KiB", kSourceBytesMax >> 10));
  if (fields.source.empty()) return Refused(400, "source is missing");
  if (!IsUtf8(fields.source) || fields.source.find('\0') != std::string::npos)
    return Refused(400, "source is no text in UTF-8");
  if (!IsFileName(fields.name))
    return Refused(400,
                   "name must be a file's name of letters, digits, '.', '_', '+' and '-' that ends "
                   "in .cpp, .cc, .c, .cu or .py");
  if (fields.key.size() > kKeyBytesMax)
    return Refused(400, fmt::format("key is over {} bytes", kKeyBytesMax));
  if (fields.set.size() > kSettingsMax) return Refused(400, "set has too many constants");
  if (fields.kind != "" && fields.kind != "judge" && fields.kind != "compare")
    return Refused(400, "kind must be judge or compare");
  if ((fields.kind == "compare") > !fields.against.empty())
    return Refused(400, "kind compare needs against: a verdict's id");
  const auto problem = hall.catalogue().Find(fields.problem);
  if (!problem) return Refused(404, problem.error().message);
  const auto checked = hall.catalogue().Check(**problem, fields.size, fields.set);
  return checked ? SubmissionAnswer() : Refused(400, checked.error().message);
}

// The opponent is the candidate of a verdict on the same problem.
Result<SubmissionAnswer> FindOpponent(Hall& hall, const SubmissionFields& fields,
                                      const Account& author, NewJob* asked, Instant now) {
  if (fields.against.empty()) return SubmissionAnswer();
  ASSAY_ASSIGN_OR_RETURN(const Board* board, hall.CaughtUpBoard());
  const BoardRow* row = board->Find(fields.against);
  if (row == nullptr) return Refused(404, fmt::format("there is no verdict {}", fields.against));
  if (row->entry.problem != fields.problem)
    return Refused(400, fmt::format("the verdict {} is on another problem, {}", fields.against,
                                    row->entry.problem));
  ASSAY_ASSIGN_OR_RETURN(const int64_t until_s,
                         hall.source_hidden_until_s(author, row->entry, now));
  if (until_s != 0) return Refused(403, "the source of that verdict is hidden until the deadline");
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.id = fields.against;
  query.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> records, hall.archive().Find(query));
  if (records.empty() || records[0].source.empty())
    return Refused(404, fmt::format("the source of the verdict {} was not kept", fields.against));
  const std::string& path = records[0].facts.name;
  asked->opponent_hash = records[0].source;
  asked->opponent_name = path.substr(path.rfind('/') + 1);
  asked->kind = JobKind::kCompare;
  return SubmissionAnswer();
}

}  // namespace

bool IsVerdictId(const std::string& text) {
  return !text.empty() && text.size() <= kVerdictIdBytesMax &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Result<SubmissionAnswer> SubmitCandidate(Hall& hall, const Account& author,
                                         const SubmissionFields& fields, Instant now) {
  if (SubmissionAnswer refused = Check(hall, fields); !refused.why.empty()) return refused;
  ASSAY_ASSIGN_OR_RETURN(const SubmitTerms terms, hall.submit_terms(author, now));
  if (!terms.refusal.empty()) return Refused(403, terms.refusal);
  NewJob asked;
  asked.author = author;
  asked.problem = fields.problem;
  asked.size = fields.size;
  asked.set = fields.set;
  asked.name = fields.name;
  asked.key = fields.key;
  ASSAY_ASSIGN_OR_RETURN(SubmissionAnswer refused, FindOpponent(hall, fields, author, &asked, now));
  if (!refused.why.empty()) return refused;
  asked.source_hash = Sha256Hex(fields.source);
  const auto keep = [&]() -> Result<void> {
    ASSAY_RETURN_IF_ERROR(hall.archive().Put(fields.source));
    return {};
  };
  ASSAY_ASSIGN_OR_RETURN(Submitted submitted, hall.jobs().Submit(asked, terms.limits, now, keep));
  SubmissionAnswer answer;
  answer.job = std::move(submitted.job);
  answer.why = std::move(submitted.why);
  answer.retry_after_s = submitted.retry_after_s;
  switch (submitted.result) {
    case Submission::kAccepted:
      answer.status = 202;
      break;
    case Submission::kKnown:
      answer.status = 200;
      break;
    case Submission::kKeyReused:
      answer.status = 409;
      break;
    case Submission::kQueueFull:
    case Submission::kQuotaSpent:
      answer.status = 429;
      break;
  }
  return answer;
}

bool MayCancel(const WebRequest& request, const Job& job) {
  if (!request.account) return false;
  const Account& account = *request.account;
  const bool is_of_class = request.IsMentor() && account.class_id == job.author.class_id;
  if (account.ManagesServer() || is_of_class) return true;
  const bool was_asked = job.kind == JobKind::kJudge || job.kind == JobKind::kCompare;
  return was_asked && account.id == job.author.id;
}

}  // namespace assay
