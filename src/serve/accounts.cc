#include "serve/accounts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/secret.h"
#include "serve/account_names.h"
#include "serve/words.h"

namespace assay {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr int64_t kSessionLastsS = 14 * 24 * 3600;
constexpr const char* kServerName = "server";
constexpr const char* kColumns =
    "accounts.id, accounts.name, accounts.role, accounts.class_id FROM accounts";

Account AccountOf(const SqliteStatement& row) {
  Account account;
  account.id = row.Number(0);
  account.name = row.Text(1);
  account.role = RoleFromName(row.Text(2)).value_or(Role::kStudent);
  account.class_id = row.Number(3);
  return account;
}

Result<std::optional<Account>> One(SqliteStatement& select) {
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::nullopt;
  return AccountOf(select);
}

}  // namespace

std::string CsrfTokenOf(const std::string& session) {
  return Sha256Hex("assay form of session " + session).substr(0, 2 * kTokenBytes);
}

Result<Account> Accounts::Make(const std::string& name, Role role, int64_t class_id, Instant now) {
  ASSAY_RETURN_IF_ERROR(CheckAccountName(name));
  ASSAY_ASSIGN_OR_RETURN(const auto taken, FindAlike(name));
  if (taken && taken->name == name)
    return UsageError(fmt::format("the name {} is taken: choose another one", name));
  if (taken)
    return UsageError(fmt::format(
        "the name {} is taken, or looks like {}, which is: choose another one", name, taken->name));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO accounts(name, role, class_id, made_s) VALUES(?, ?, ?, ?)"
                        " RETURNING id"));
  insert.Bind(name).Bind(RoleName(role)).Bind(class_id).Bind(now.utc_s);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  Account account{insert.Number(0), name, role, class_id};
  ASSAY_RETURN_IF_ERROR(insert.Step());
  return account;
}

Result<Account> Accounts::ServerAccount(Instant now) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} WHERE is_server = 1", kColumns)));
  ASSAY_ASSIGN_OR_RETURN(const auto known, One(select));
  if (known) return *known;
  Account account;
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(account, Make(kServerName, Role::kMachine, 0, now));
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement update,
                           database_.Prepare("UPDATE accounts SET is_server = 1 WHERE id = ?"));
    ASSAY_RETURN_IF_ERROR(update.Bind(account.id).Step());
    return {};
  });
  if (!done) return std::unexpected(done.error());
  return account;
}

Result<bool> Accounts::IsServer(int64_t account) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT 1 FROM accounts WHERE id = ? AND is_server = 1"));
  return select.Bind(account).Step();
}

Result<std::optional<Account>> Accounts::Find(int64_t id) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} WHERE id = ?", kColumns)));
  select.Bind(id);
  return One(select);
}

Result<std::optional<Account>> Accounts::FindAlike(const std::string& name) {
  const std::string skeleton = SkeletonOfName(name);
  ASSAY_ASSIGN_OR_RETURN(std::vector<Account> all, All());
  for (Account& each : all)
    if (SkeletonOfName(each.name) == skeleton) return std::move(each);
  return std::nullopt;
}

Result<std::optional<Account>> Accounts::FindByName(const std::string& name) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} WHERE name = ?", kColumns)));
  select.Bind(name);
  return One(select);
}

Result<std::vector<Account>> Accounts::All() {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare(fmt::format("SELECT {} ORDER BY id", kColumns)));
  std::vector<Account> accounts;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return accounts;
    accounts.push_back(AccountOf(select));
  }
}

Result<std::string> Accounts::Issue(int64_t account, std::string_view kind, int64_t made_s,
                                    int64_t ends_s) {
  ASSAY_ASSIGN_OR_RETURN(std::string token, RandomHex(kTokenBytes));
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement insert,
                         database_.Prepare("INSERT INTO tokens(account, hash, kind, made_s, ends_s)"
                                           " VALUES(?, ?, ?, ?, ?)"));
  insert.Bind(account).Bind(Sha256Hex(token)).Bind(kind).Bind(made_s).Bind(ends_s);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  return token;
}

Result<std::string> Accounts::IssueAccess(int64_t account, Instant now, int64_t lasts_s) {
  return Issue(account, "access", now.utc_s, lasts_s == 0 ? 0 : now.utc_s + lasts_s);
}

Result<void> Accounts::DropEndedSessions(Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement remove,
      database_.Prepare("DELETE FROM tokens WHERE kind = 'session' AND ends_s <= ?"));
  ASSAY_RETURN_IF_ERROR(remove.Bind(now.utc_s).Step());
  return {};
}

Result<std::string> Accounts::IssueSession(int64_t account, Instant now) {
  ASSAY_RETURN_IF_ERROR(DropEndedSessions(now));
  return Issue(account, "session", now.utc_s, now.utc_s + kSessionLastsS);
}

Result<std::optional<Account>> Accounts::Of(const std::string& token, std::string_view kind,
                                            Instant now) {
  if (token.size() != 2 * kTokenBytes) return std::nullopt;
  const std::string hash = Sha256Hex(token);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT accounts.id, accounts.name, accounts.role, accounts.class_id, tokens.hash"
          " FROM tokens JOIN accounts ON accounts.id = tokens.account"
          " WHERE tokens.hash = ? AND kind = ? AND revoked = 0 AND (ends_s = 0 OR ends_s > ?)"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(hash).Bind(kind).Bind(now.utc_s).Step());
  if (!found || !IsSameSecret(select.Text(4), hash)) return std::nullopt;
  return AccountOf(select);
}

Result<std::optional<Account>> Accounts::OfAccess(const std::string& token, Instant now) {
  return Of(token, "access", now);
}

Result<std::optional<Account>> Accounts::OfSession(const std::string& token, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(auto account, Of(token, "session", now));
  if (!account) ASSAY_RETURN_IF_ERROR(DropIfEnded(token, now));
  return account;
}

Result<void> Accounts::DropIfEnded(const std::string& token, Instant now) {
  const std::string hash = Sha256Hex(token);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT 1 FROM tokens WHERE hash = ? AND kind = 'session' AND ends_s <= ?"));
  ASSAY_ASSIGN_OR_RETURN(const bool ended, select.Bind(hash).Bind(now.utc_s).Step());
  if (!ended) return {};
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement remove,
                         database_.Prepare("DELETE FROM tokens WHERE hash = ?"));
  ASSAY_RETURN_IF_ERROR(remove.Bind(hash).Step());
  return {};
}

Result<void> Accounts::Revoke(const std::string& token) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement update,
                         database_.Prepare("UPDATE tokens SET revoked = 1 WHERE hash = ?"));
  ASSAY_RETURN_IF_ERROR(update.Bind(Sha256Hex(token)).Step());
  return {};
}

Result<void> Accounts::RevokeAll(int64_t account) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement update,
                         database_.Prepare("UPDATE tokens SET revoked = 1 WHERE account = ?"));
  ASSAY_RETURN_IF_ERROR(update.Bind(account).Step());
  return {};
}

}  // namespace assay
