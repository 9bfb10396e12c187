#include "serve/class_room.h"

#include <algorithm>

namespace assay {
namespace {

constexpr int64_t kWorklogsADay = 20;

// Members of classes whose code an entry shows: its author, and those who were the first to send a
// source in it. A mentor may have asked to judge it again, or beside another one.
Result<std::vector<Account>> AuthorsOf(Hall& hall, const BoardEntry& entry) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      hall.database().Prepare(
          "SELECT id, name, class_id FROM accounts WHERE class_id <> 0 AND (name = ?1 OR id IN"
          " (SELECT account FROM jobs WHERE id IN (SELECT min(id) FROM jobs WHERE source IN"
          "   (?2, (SELECT opponent FROM jobs WHERE id = ?3)) GROUP BY source)))"
          " ORDER BY name <> ?1"));
  select.Bind(entry.author).Bind(entry.source_hash).Bind(entry.job);
  std::vector<Account> authors;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return authors;
    Account& author = authors.emplace_back();
    author.id = select.Number(0);
    author.name = select.Text(1);
    author.class_id = select.Number(2);
  }
}

}  // namespace

Result<Class> ClassRoom::ClassOf(int64_t class_id) {
  Class none;
  none.terms = {"this server", 0, jobs.limits().made_a_day_max, kWorklogsADay, ""};
  if (class_id == 0) return none;
  ASSAY_ASSIGN_OR_RETURN(auto found, classes.Find(class_id));
  return found ? std::move(*found) : std::move(none);
}

void UseRulesOfClasses(Hall& hall) {
  hall.submit_terms = [&hall, limits = hall.jobs().limits()](const Account& account,
                                                             Instant now) -> Result<SubmitTerms> {
    Accounts accounts = hall.accounts();
    const auto own = Classes(hall.database(), accounts).JobLimits(account, limits, now);
    if (!own && own.error().status >= 500) return EnvironmentError(own.error().why);
    if (!own) return SubmitTerms{limits, own.error().why, 0};
    ASSAY_ASSIGN_OR_RETURN(const auto of,
                           Classes(hall.database(), accounts).Find(account.class_id));
    return SubmitTerms{*own, "", of ? of->terms.deadline_s : 0};
  };
  hall.source_hidden_until_s = [&hall](const Account& viewer, const BoardEntry& entry,
                                       Instant now) -> Result<int64_t> {
    if (entry.author.empty()) return 0;
    Accounts accounts = hall.accounts();
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Account> authors, AuthorsOf(hall, entry));
    int64_t until_s = 0;
    for (const Account& author : authors) {
      if (author.id == viewer.id && author.name == entry.author) return 0;
      ASSAY_ASSIGN_OR_RETURN(const auto of,
                             Classes(hall.database(), accounts).Find(author.class_id));
      if (!MaySeeSource(viewer, author, of ? &*of : nullptr, now.utc_s))
        until_s = std::max(until_s, of->terms.deadline_s);
    }
    return until_s;
  };
}

Result<int> TendClasses(Hall& hall, Instant now) {
  ASSAY_RETURN_IF_ERROR(hall.CaughtUpBoard());
  Accounts accounts = hall.accounts();
  Jobs jobs = hall.jobs();
  Classes classes(hall.database(), accounts);
  return Finals(hall.database(), classes, jobs).Tend(now);
}

}  // namespace assay
