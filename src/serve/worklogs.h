// Worklogs that members sent: each upload is kept as one tar in the archive. What came once is
// never taken back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "archive/store.h"
#include "serve/accounts.h"
#include "serve/class_rules.h"
#include "serve/refusal.h"
#include "serve/worklog_upload.h"

namespace assay {

struct WorklogEntry {
  int64_t id = 0, class_id = 0;  // class_id 0: none
  Account author;
  std::string worklog, problem;  // its own id, and the problem's name
  int64_t uploads = 0;           // number of the last one
  int64_t first_s = 0, sent_s = 0;
  std::string tar;  // of the last upload: hash in the archive
};

class Worklogs {
 public:
  // All must outlive this object.
  Worklogs(Database& database, Store& store, const TarLibrary& tars)
      : database_(database), store_(store), tars_(tars) {}

  // Keeps an upload of the author's. `of`: the author's class, or an empty one. The deadline and
  // the quota count at this moment: an upload that began before the deadline and ends after it is
  // refused.
  Granted<WorklogEntry> Keep(const Account& author, const Class& of, std::span<const TarFile> files,
                             const UploadedWorklog& uploaded, Instant now);

  // Keeps an upload as it came elsewhere; `tar`: its hash in the archive. Returns the entry's id.
  Result<int64_t> Restore(const Account& author, const Class& of, const UploadedWorklog& uploaded,
                          const std::string& tar, int64_t time_s);

  Result<std::optional<WorklogEntry>> Find(int64_t id);
  // By author, then oldest first.
  Result<std::vector<WorklogEntry>> OfClass(int64_t class_id);

  Result<std::vector<TarFile>> Files(const WorklogEntry& entry);
  Result<std::string> Tar(const WorklogEntry& entry) { return store_.Get(entry.tar); }
  Result<UploadHistory> History(const WorklogEntry& entry);

  struct Checked {
    UploadedWorklog uploaded;
    std::vector<Finding> findings;
  };
  // The last upload, as the check finds it now.
  Result<Checked> Check(const WorklogEntry& entry);

 private:
  Result<std::vector<WorklogEntry>> Select(std::string_view condition, int64_t value);
  Result<std::vector<int64_t>> TimesSent(int64_t account);
  Result<int64_t> RowOf(const Account& author, const Class& of, const Worklog& worklog);
  Result<void> AddUpload(int64_t row, const UploadedWorklog& uploaded, const std::string& tar,
                         int64_t time_s);

  Database& database_;
  Store& store_;
  const TarLibrary& tars_;
};

// Whether `viewer` may read the worklog, which has its author's code. `of`: its class.
bool MaySeeWorklog(const Account& viewer, const WorklogEntry& entry, const Class& of,
                   int64_t now_s);

}  // namespace assay
