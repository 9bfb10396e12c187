// assay archive copy, assay archive grant.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "archive/copy.h"
#include "archive/open_store.h"
#include "cli/archive_command.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "queue/postgres_roles.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int64_t kToldRecords = 10'000;

OpenStoreOptions Telling() {
  OpenStoreOptions options;
  options.tell = [](const std::string& what) { Notice(what); };
  return options;
}

Result<int> Copy(const ArchiveCopyOptions& options) {
  if (options.from == options.to) return UsageError("FROM and TO are one archive");
  ASSAY_ASSIGN_OR_RETURN(const auto from, OpenStore(options.from, StoreAccess::kRead, Telling()));
  ASSAY_ASSIGN_OR_RETURN(const auto to, OpenStore(options.to, StoreAccess::kWrite, Telling()));
  int64_t told = 0;
  ASSAY_ASSIGN_OR_RETURN(const CopyReport report, CopyArchive(*from, *to, [&](int64_t done) {
                           if (done < told + kToldRecords) return;
                           told = done;
                           Notice(fmt::format("{} records are done", done));
                         }));
  ASSAY_ASSIGN_OR_RETURN(const ChainReport chain, VerifyChain(*to));
  for (const std::string& fault : chain.faults) std::fputs((fault + "\n").c_str(), stdout);
  if (!chain.faults.empty() || chain.head != report.head) return kExitWrong;
  std::fputs(fmt::format("copied {}, {} were there; {} has {}, whole; the last is {}\n",
                         Counted(report.copied, "record"), report.known, StoreName(options.to),
                         chain.records, chain.head)
                 .c_str(),
             stdout);
  return kExitGood;
}

int Ended(const Result<int>& code) { return code ? *code : ReportError(code.error()); }

}  // namespace

int RunArchiveCopy(const ArchiveCopyOptions& options) { return Ended(Copy(options)); }

int RunArchiveGrant(const ArchiveGrantOptions& options) {
  const auto done =
      GrantRights(options.url, options.role, options.as, {options.queued_max, options.claimed_max});
  if (!done) return ReportError(done.error());
  std::fputs(fmt::format("{} may now do at {}: {}\n", options.role, StoreName(options.url),
                         options.as == "none" ? "nothing" : "the work of a " + options.as)
                 .c_str(),
             stdout);
  return kExitGood;
}

}  // namespace assay
