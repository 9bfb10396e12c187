// Accounts, and the tokens by which their owners are known. Tokens have 128 random bits; the
// database keeps their SHA-256. An access token is for programs and for the login; a session is a
// browser's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/database.h"
#include "serve/instant.h"
#include "serve/types.h"

namespace assay {

// The field that every form of a session carries: derived from the session, which no other site
// can read. Pure.
std::string CsrfTokenOf(const std::string& session);

class Accounts {
 public:
  explicit Accounts(Database& database) : database_(database) {}

  // Errors (kUsage): the name cannot be used, or is taken, or looks like one that is.
  Result<Account> Make(const std::string& name, Role role, int64_t class_id, Instant now);
  // The account of the server's own runners, whose jobs may be anybody's; made at the first call.
  Result<Account> ServerAccount(Instant now);
  Result<bool> IsServer(int64_t account);
  Result<std::optional<Account>> Find(int64_t id);
  Result<std::optional<Account>> FindByName(const std::string& name);
  // An account whose name cannot be told from this one by looking at it.
  Result<std::optional<Account>> FindAlike(const std::string& name);
  Result<std::vector<Account>> All();

  // Returns the token: it is kept nowhere. `lasts_s` 0: it never ends.
  Result<std::string> IssueAccess(int64_t account, Instant now, int64_t lasts_s = 0);
  Result<std::string> IssueSession(int64_t account, Instant now);
  // The account of a token that stands; nullopt: there is none.
  Result<std::optional<Account>> OfAccess(const std::string& token, Instant now);
  // A session that was seen after its end is over, even if the clock goes back.
  Result<std::optional<Account>> OfSession(const std::string& token, Instant now);
  Result<void> Revoke(const std::string& token);
  // All tokens and sessions of the account.
  Result<void> RevokeAll(int64_t account);

 private:
  Result<std::string> Issue(int64_t account, std::string_view kind, int64_t made_s, int64_t ends_s);
  Result<std::optional<Account>> Of(const std::string& token, std::string_view kind, Instant now);
  Result<void> DropEndedSessions(Instant now);
  // A token that is none takes no lock of a writer.
  Result<void> DropIfEnded(const std::string& token, Instant now);

  Database& database_;
};

}  // namespace assay
