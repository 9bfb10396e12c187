// Classes, their invitations, and who joined. An invitation's code has 128 random bits; the
// database keeps its SHA-256 alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/accounts.h"
#include "serve/class_rules.h"
#include "serve/jobs.h"
#include "serve/refusal.h"

namespace assay {

struct InvitationTerms {
  Role role = Role::kStudent;
  int64_t uses = 1;
  int64_t lasts_s = 30 * kDay_s;
  std::string account;  // of a member who lost the token, by name; empty: for new members
};

class Classes {
 public:
  // Both must outlive this object.
  Classes(Database& database, Accounts& accounts) : database_(database), accounts_(accounts) {}

  Granted<Class> Make(const ClassTerms& terms, Instant now);
  // Keeps a class as it was elsewhere, but for its id.
  Result<Class> Restore(Class of);
  Result<std::optional<Class>> Find(int64_t id);
  Result<std::optional<Class>> FindByKey(const std::string& key);
  Result<std::vector<Class>> All();
  // Changes the terms. A deadline that has passed stays, and so does a rubric by which marks were
  // given.
  Granted<Class> Change(const Class& of, const ClassTerms& terms, Instant now);
  // Its deadline is now. Refusals: 409 it is over.
  Granted<Class> Close(const Class& of, Instant now);
  // The limits of a member's jobs, out of the server's. Refusals: 403 the deadline is over.
  Granted<QueueLimits> JobLimits(const Account& author, const QueueLimits& limits, Instant now);
  Result<std::vector<Account>> Members(int64_t class_id);
  // Jobs that members asked for, by account.
  Result<std::map<int64_t, int64_t>> JobCounts(int64_t class_id);

  struct NewInvitation {
    Invitation invitation;
    std::string code;  // shown once
  };
  Granted<NewInvitation> Invite(const Class& to, const InvitationTerms& terms, Instant now);
  Result<std::vector<Invitation>> Invitations(int64_t class_id);
  Granted<Invitation> Revoke(const Class& of, int64_t invitation);
  // The invitation of a code that can be used, for the form that asks for a name.
  Granted<Invitation> OfCode(const std::string& code, Instant now);

  struct Joined {
    Account account;
    std::string token;  // shown once
  };
  // Makes the account and its token. An invitation for a member who lost the token ends the old
  // one; `name` is left out then.
  Granted<Joined> Join(const std::string& code, const std::string& name, Instant now);

 private:
  Result<bool> HasMarks(int64_t class_id);
  Granted<Account> AccountFor(const Invitation& invitation, const std::string& name, Instant now);
  Result<void> EndPromotions(int64_t account, Instant now);

  Database& database_;
  Accounts& accounts_;
};

}  // namespace assay
