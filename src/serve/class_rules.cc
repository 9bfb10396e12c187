#include "serve/class_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/utf8.h"
#include "report/text.h"
#include "worklog/rubric.h"

namespace assay {
namespace {

constexpr size_t kNameBytesMax = 100;
constexpr int64_t kADayMax = 1'000'000;

}  // namespace

Result<void> CheckClassTerms(const ClassTerms& terms, int64_t now_s) {
  if (terms.name.empty() || terms.name.size() > kNameBytesMax || !IsUtf8(terms.name) ||
      Printable(terms.name, true) != terms.name)
    return UsageError(
        fmt::format("the name of a class is one line of at most {} bytes", kNameBytesMax));
  if (terms.deadline_s != 0 && terms.deadline_s <= now_s)
    return UsageError("the deadline lies in the past: give a later one");
  for (const int64_t a_day : {terms.jobs_a_day, terms.worklogs_a_day})
    if (a_day < 1 || a_day > kADayMax)
      return UsageError(fmt::format("a quota is 1 to {} a day", kADayMax));
  if (!terms.rubric.empty()) ASSAY_RETURN_IF_ERROR(ParseRubric(terms.rubric, "the rubric"));
  return {};
}

bool IsOver(const Class& of, int64_t now_s) {
  return of.closed_s != 0 || (of.terms.deadline_s != 0 && now_s >= of.terms.deadline_s);
}

bool MayManage(const Account& viewer, const Class& of) {
  return viewer.role == Role::kMentor && (viewer.class_id == 0 || viewer.class_id == of.id);
}

bool IsMember(const Account& viewer, const Class& of) {
  return viewer.class_id == of.id || MayManage(viewer, of);
}

bool MaySeeSource(const Account& viewer, const Account& author, const Class* of, int64_t now_s) {
  if (of == nullptr || (viewer.id == author.id && viewer.id != 0)) return true;
  if (MayManage(viewer, *of)) return true;
  return of->terms.deadline_s == 0 || IsOver(*of, now_s);
}

std::optional<Refusal> RefuseLate(const Class& of, std::string_view noun, int64_t now_s) {
  if (!IsOver(of, now_s)) return std::nullopt;
  return Refusal(403, fmt::format("the deadline of {} is over, and the {} was not here before it",
                                  of.terms.name, noun));
}

std::optional<Refusal> RefuseToTake(const Class& of, std::span<const int64_t> sent_s, int64_t a_day,
                                    std::string_view noun, int64_t now_s) {
  if (auto late = RefuseLate(of, noun, now_s)) return late;
  std::vector<int64_t> counted;
  for (const int64_t each : sent_s)
    if (each > now_s - kDay_s) counted.push_back(each);
  if (std::cmp_less(counted.size(), a_day)) return std::nullopt;
  std::sort(counted.begin(), counted.end());
  // The place that becomes free first.
  const int64_t oldest = counted[counted.size() - static_cast<size_t>(a_day)];
  const int64_t wait_s = std::clamp<int64_t>(oldest + kDay_s - now_s, 1, kDay_s);
  return Refusal{429,
                 fmt::format("the quota of {} is used up: the class takes {} of an account in 24 "
                             "hours; try again in {} min",
                             noun, Counted(a_day, noun), (wait_s + 59) / 60),
                 wait_s};
}

std::optional<Refusal> RefuseInvitation(const Invitation& invitation, int64_t now_s) {
  const auto refuse = [](std::string_view why) {
    return Refusal{410, fmt::format("this invitation {}: ask your mentor for another one", why), 0};
  };
  if (invitation.revoked) return refuse("was taken back");
  if (now_s >= invitation.ends_s) return refuse("is over");
  if (invitation.used >= invitation.uses_max) return refuse("was used up");
  return std::nullopt;
}

std::vector<Contender> Finalists(std::span<const Contender> contenders) {
  std::vector<Contender> sorted(contenders.begin(), contenders.end());
  std::sort(sorted.begin(), sorted.end(), [](const Contender& a, const Contender& b) {
    return std::tie(a.account, a.board, b.ci_low, a.job) <
           std::tie(b.account, b.board, a.ci_low, b.job);
  });
  std::vector<Contender> best;
  for (Contender& each : sorted)
    if (best.empty() || best.back().account != each.account || best.back().board != each.board)
      best.push_back(std::move(each));
  return best;
}

}  // namespace assay
