// The rules of a class: who sees what until the deadline, quotas, invitations, finalists. Pure; the
// time is given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/refusal.h"
#include "serve/types.h"

namespace assay {

inline constexpr int64_t kDay_s = 24 * 3600;

// As a mentor chooses them.
struct ClassTerms {
  std::string name;
  int64_t deadline_s = 0;                         // seconds since 1970; 0: none
  int64_t jobs_a_day = 100, worklogs_a_day = 20;  // of one account, in any 24 hours
  std::string rubric;                             // TOML; empty: the shipped one
};

struct Class {
  int64_t id = 0;
  std::string key;  // random; stays the same where the class is imported
  ClassTerms terms;
  int64_t made_s = 0;
  int64_t closed_s = 0;  // when the server saw the deadline pass; 0: open
  int64_t finals_s = 0;  // when all finals had been asked for; 0: not yet
};

// Errors (kUsage) say which term is wrong.
Result<void> CheckClassTerms(const ClassTerms& terms, int64_t now_s);

// A deadline that was seen to pass stays passed, though the clock be set back.
bool IsOver(const Class& of, int64_t now_s);

// A mentor of the server (without a class), or of this class.
bool MayManage(const Account& viewer, const Class& of);
bool IsMember(const Account& viewer, const Class& of);

// Whether `viewer` sees a member's source and what was compiled of it. `of`: the author's class;
// null: none, so it hides nothing.
bool MaySeeSource(const Account& viewer, const Account& author, const Class* of, int64_t now_s);

// Whether the deadline refuses a member's job or worklog.
std::optional<Refusal> RefuseLate(const Class& of, std::string_view noun, int64_t now_s);
// Whether a member may send something: `sent_s`, the times of those that count, oldest first;
// `a_day`, how many may be sent in 24 hours. Times in the future (a clock was set back) count.
std::optional<Refusal> RefuseToTake(const Class& of, std::span<const int64_t> sent_s, int64_t a_day,
                                    std::string_view noun, int64_t now_s);

struct Invitation {
  int64_t id = 0, class_id = 0;
  Role role = Role::kStudent;
  int64_t account = 0;  // whose lost token it replaces; 0: it makes accounts
  int64_t uses_max = 1, used = 0;
  int64_t made_s = 0, ends_s = 0;
  bool revoked = false;
};
inline constexpr int64_t kInvitationUsesMax = 1000;

std::optional<Refusal> RefuseInvitation(const Invitation& invitation, int64_t now_s);

// A judged candidate of a class before the deadline.
struct Contender {
  int64_t job = 0, account = 0;
  std::string board;  // problem, size, constants, device and precision: what is compared
  std::string verdict;
  double ci_low = 0;  // of the speedup
};
// One contender for each account and board: the one whose speedup is the most certain to be large
// (by the lower end of its interval, so that a lucky sample does not choose it), the earlier one of
// equals. By account and board.
std::vector<Contender> Finalists(std::span<const Contender> contenders);

}  // namespace assay
