#include "serve/classes.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/secret.h"
#include "serve/leases.h"
#include "serve/words.h"

namespace assay {
namespace {

constexpr size_t kCodeBytes = 16;
constexpr size_t kKeyBytes = 16;
constexpr int64_t kInvitationLastsMax = 400 * kDay_s;
constexpr const char* kClassColumns =
    "id, key, name, deadline_s, jobs_a_day, worklogs_a_day, rubric, made_s, closed_s, finals_s "
    "FROM classes";
constexpr const char* kInvitationColumns =
    "id, class, role, ifnull(account, 0), uses_max, used, made_s, ends_s, revoked, hash "
    "FROM invitations";

Class ClassOf(const SqliteStatement& row) {
  Class each;
  each.id = row.Number(0);
  each.key = row.Text(1);
  each.terms = {row.Text(2), row.Number(3), row.Number(4), row.Number(5), row.Text(6)};
  each.made_s = row.Number(7);
  each.closed_s = row.Number(8);
  each.finals_s = row.Number(9);
  return each;
}

Invitation InvitationOf(const SqliteStatement& row) {
  Invitation each;
  each.id = row.Number(0);
  each.class_id = row.Number(1);
  each.role = RoleFromName(row.Text(2)).value_or(Role::kStudent);
  each.account = row.Number(3);
  each.uses_max = row.Number(4);
  each.used = row.Number(5);
  each.made_s = row.Number(6);
  each.ends_s = row.Number(7);
  each.revoked = row.Number(8) != 0;
  return each;
}

template <typename Item>
Result<std::vector<Item>> Rows(SqliteStatement& select, Item (*read)(const SqliteStatement&)) {
  std::vector<Item> items;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return items;
    items.push_back(read(select));
  }
}

template <typename Item>
std::optional<Item> First(std::vector<Item> items) {
  if (items.empty()) return std::nullopt;
  return std::move(items.front());
}

}  // namespace

Granted<QueueLimits> Classes::JobLimits(const Account& author, const QueueLimits& limits,
                                        Instant now) {
  if (author.class_id == 0 || author.role == Role::kMentor) return limits;
  ASSAY_ASSIGN_OR_RETURN(const auto of, Find(author.class_id));
  if (!of) return limits;
  if (auto late = RefuseLate(*of, "job", now.utc_s)) return std::unexpected(std::move(*late));
  QueueLimits own = limits;
  own.made_a_day_max = of->terms.jobs_a_day;
  return own;
}

Result<Class> Classes::Restore(Class of) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO classes(key, name, deadline_s, jobs_a_day, worklogs_a_day, "
                        "rubric, made_s, closed_s, finals_s) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) "
                        "RETURNING id"));
  insert.Bind(of.key).Bind(of.terms.name).Bind(of.terms.deadline_s).Bind(of.terms.jobs_a_day);
  insert.Bind(of.terms.worklogs_a_day).Bind(of.terms.rubric).Bind(of.made_s).Bind(of.closed_s);
  ASSAY_RETURN_IF_ERROR(insert.Bind(of.finals_s).Step());
  of.id = insert.Number(0);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  return of;
}

Granted<Class> Classes::Make(const ClassTerms& terms, Instant now) {
  ASSAY_RETURN_IF_ERROR(CheckClassTerms(terms, now.utc_s));
  Class made{0, {}, terms, now.utc_s, 0, 0};
  ASSAY_ASSIGN_OR_RETURN(made.key, RandomHex(kKeyBytes));
  ASSAY_ASSIGN_OR_RETURN(made, Restore(made));
  return made;
}

Result<std::optional<Class>> Classes::Find(int64_t id) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} WHERE id = ?", kClassColumns)));
  ASSAY_ASSIGN_OR_RETURN(auto rows, Rows(select.Bind(id), ClassOf));
  return First(std::move(rows));
}

Result<std::optional<Class>> Classes::FindByKey(const std::string& key) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} WHERE key = ?", kClassColumns)));
  ASSAY_ASSIGN_OR_RETURN(auto rows, Rows(select.Bind(key), ClassOf));
  return First(std::move(rows));
}

Result<std::vector<Class>> Classes::All() {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} ORDER BY id", kClassColumns)));
  return Rows(select, ClassOf);
}

Result<bool> Classes::HasMarks(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT 1 FROM marks JOIN worklogs ON worklogs.id = marks.worklog "
                        "WHERE worklogs.class = ?"));
  return select.Bind(class_id).Step();
}

Granted<Class> Classes::Change(const Class& of, const ClassTerms& terms, Instant now) {
  if (IsOver(of, now.utc_s) && terms.deadline_s != of.terms.deadline_s)
    return std::unexpected(
        Refusal(409, fmt::format("the deadline of {} has passed: it stays", of.terms.name)));
  if (terms.rubric != of.terms.rubric) {
    ASSAY_ASSIGN_OR_RETURN(const bool marked, HasMarks(of.id));
    if (marked) return std::unexpected(Refusal(409, "marks were given by the rubric: it stays"));
  }
  ClassTerms checked = terms;
  if (terms.deadline_s == of.terms.deadline_s) checked.deadline_s = 0;
  ASSAY_RETURN_IF_ERROR(CheckClassTerms(checked, now.utc_s));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare("UPDATE classes SET name = ?, deadline_s = ?, jobs_a_day = ?, "
                        "worklogs_a_day = ?, rubric = ? WHERE id = ?"));
  update.Bind(terms.name).Bind(terms.deadline_s).Bind(terms.jobs_a_day);
  update.Bind(terms.worklogs_a_day).Bind(terms.rubric).Bind(of.id);
  ASSAY_RETURN_IF_ERROR(update.Step());
  Class changed = of;
  changed.terms = terms;
  return changed;
}

Granted<Class> Classes::Close(const Class& of, Instant now) {
  if (IsOver(of, now.utc_s))
    return std::unexpected(Refusal(409, fmt::format("{} is over already", of.terms.name)));
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement update,
                         database_.Prepare("UPDATE classes SET deadline_s = ? WHERE id = ?"));
  ASSAY_RETURN_IF_ERROR(update.Bind(now.utc_s).Bind(of.id).Step());
  Class closed = of;
  closed.terms.deadline_s = now.utc_s;
  return closed;
}

Result<std::vector<Account>> Classes::Members(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(std::vector<Account> all, accounts_.All());
  std::erase_if(all, [&](const Account& each) { return each.class_id != class_id; });
  return all;
}

Result<std::map<int64_t, int64_t>> Classes::JobCounts(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT account, count(*) FROM jobs JOIN accounts ON accounts.id = account "
          "WHERE class_id = ? AND kind NOT IN ('finalist', 'spot_check') GROUP BY account"));
  select.Bind(class_id);
  std::map<int64_t, int64_t> counts;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return counts;
    counts[select.Number(0)] = select.Number(1);
  }
}

Granted<Classes::NewInvitation> Classes::Invite(const Class& to, const InvitationTerms& terms,
                                                Instant now) {
  if (terms.uses < 1 || terms.uses > kInvitationUsesMax)
    return std::unexpected(
        Refusal(400, fmt::format("an invitation is for 1 to {} members", kInvitationUsesMax)));
  if (terms.lasts_s < 60 || terms.lasts_s > kInvitationLastsMax)
    return std::unexpected(Refusal(400, "an invitation lasts a minute to 400 days"));
  Invitation made{0,    to.id, terms.role, 0, terms.uses, 0, now.utc_s, now.utc_s + terms.lasts_s,
                  false};
  if (!terms.account.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const auto account, accounts_.FindByName(terms.account));
    if (!account || account->class_id != to.id)
      return std::unexpected(
          Refusal(404, fmt::format("{} is no member of {}", terms.account, to.terms.name)));
    made.account = account->id;
    made.role = account->role;
    made.uses_max = 1;
  }
  ASSAY_ASSIGN_OR_RETURN(std::string code, RandomHex(kCodeBytes));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO invitations(class, hash, role, account, uses_max, made_s, "
                        "ends_s) VALUES(?, ?, ?, ?, ?, ?, ?) RETURNING id"));
  insert.Bind(to.id).Bind(Sha256Hex(code)).Bind(RoleName(made.role));
  if (made.account == 0)
    insert.BindNull();
  else
    insert.Bind(made.account);
  insert.Bind(made.uses_max).Bind(made.made_s).Bind(made.ends_s);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  made.id = insert.Number(0);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  return NewInvitation{made, std::move(code)};
}

Result<std::vector<Invitation>> Classes::Invitations(int64_t class_id) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(fmt::format("SELECT {} WHERE class = ? ORDER BY id", kInvitationColumns)));
  return Rows(select.Bind(class_id), InvitationOf);
}

Granted<Invitation> Classes::Revoke(const Class& of, int64_t invitation) {
  ASSAY_ASSIGN_OR_RETURN(const auto all, Invitations(of.id));
  for (Invitation each : all) {
    if (each.id != invitation) continue;
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement update,
                           database_.Prepare("UPDATE invitations SET revoked = 1 WHERE id = ?"));
    ASSAY_RETURN_IF_ERROR(update.Bind(invitation).Step());
    each.revoked = true;
    return each;
  }
  return std::unexpected(Refusal(404, "the class has no such invitation"));
}

Granted<Invitation> Classes::OfCode(const std::string& code, Instant now) {
  const Refusal unknown(404, "no such invitation: copy the whole link or code");
  if (code.size() != 2 * kCodeBytes) return std::unexpected(unknown);
  const std::string hash = Sha256Hex(code);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(fmt::format("SELECT {} WHERE hash = ?", kInvitationColumns)));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(hash).Step());
  if (!found || !IsSameSecret(select.Text(9), hash)) return std::unexpected(unknown);
  const Invitation invitation = InvitationOf(select);
  if (auto refusal = RefuseInvitation(invitation, now.utc_s))
    return std::unexpected(std::move(*refusal));
  return invitation;
}

Granted<Account> Classes::AccountFor(const Invitation& invitation, const std::string& name,
                                     Instant now) {
  if (invitation.account == 0) {
    ASSAY_ASSIGN_OR_RETURN(const auto known, accounts_.FindByName(name));
    if (known)
      return std::unexpected(
          Refusal(409, fmt::format("the name {} is taken: choose another one", name)));
    ASSAY_ASSIGN_OR_RETURN(Account made,
                           accounts_.Make(name, invitation.role, invitation.class_id, now));
    return made;
  }
  ASSAY_ASSIGN_OR_RETURN(auto account, accounts_.Find(invitation.account));
  if (!account) return std::unexpected(Refusal(404, "the account is gone"));
  ASSAY_RETURN_IF_ERROR(accounts_.RevokeAll(account->id));
  ASSAY_RETURN_IF_ERROR(EndPromotions(account->id, now));
  return std::move(*account);
}

// A mentor of the server trusted the person who had the token.
Result<void> Classes::EndPromotions(int64_t account, Instant now) {
  Leases leases(database_, {});
  ASSAY_ASSIGN_OR_RETURN(const std::vector<KnownRunner> runners, leases.Runners(now));
  for (const KnownRunner& runner : runners)
    if (runner.promoted && runner.owner.id == account)
      ASSAY_RETURN_IF_ERROR(leases.Promote(runner.id, false, now));
  return {};
}

Granted<Classes::Joined> Classes::Join(const std::string& code, const std::string& name,
                                       Instant now) {
  return WriteOrRefuse<Joined>(database_, [&]() -> Granted<Joined> {
    ASSAY_ASSIGN_OR_RETURN(const Invitation invitation, OfCode(code, now));
    Joined joined;
    ASSAY_ASSIGN_OR_RETURN(joined.account, AccountFor(invitation, name, now));
    ASSAY_ASSIGN_OR_RETURN(joined.token, accounts_.IssueAccess(joined.account.id, now));
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement update,
        database_.Prepare("UPDATE invitations SET used = used + 1 WHERE id = ?"));
    ASSAY_RETURN_IF_ERROR(update.Bind(invitation.id).Step());
    return joined;
  });
}

}  // namespace assay
