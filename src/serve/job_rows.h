// Rows of jobs and of their events, for those that change them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/database.h"
#include "serve/instant.h"
#include "serve/types.h"

namespace assay {

// Values of the column own_runner, beside 0: whose word a job's verdict is. An imported one was
// judged elsewhere: nobody here has seen it.
inline constexpr int64_t kOwnRunner = 1, kImportedRunner = 2;

// The columns that JobOf reads, with the tables they come from.
extern const char* const kJobColumns;
Job JobOf(const SqliteStatement& row);
// All that the statement, already bound, selects.
Result<std::vector<Job>> ReadJobs(SqliteStatement& select);
Result<std::optional<Job>> FindJob(Database& database, int64_t id);

// Something that happened to a job; numbers count from 1 without gaps.
struct JobEvent {
  int64_t number = 0;
  std::string time;  // ISO 8601, UTC
  std::string body;  // JSON
};
// Adds an event at the end of the job's. Returns its number.
Result<int64_t> AddJobEvent(Database& database, int64_t job, Instant now, std::string_view body);
Result<std::vector<JobEvent>> ReadJobEvents(Database& database, int64_t job, int64_t after,
                                            int64_t limit);

}  // namespace assay
