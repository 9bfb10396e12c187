#include "serve/class_room.h"

namespace assay {
namespace {

constexpr int64_t kWorklogsADay = 20;

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
    ASSAY_ASSIGN_OR_RETURN(const auto author, accounts.FindByName(entry.author));
    if (!author || author->class_id == 0) return 0;
    ASSAY_ASSIGN_OR_RETURN(const auto of,
                           Classes(hall.database(), accounts).Find(author->class_id));
    const bool may = MaySeeSource(viewer, *author, of ? &*of : nullptr, now.utc_s);
    return may ? 0 : of->terms.deadline_s;
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
