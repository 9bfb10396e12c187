// A job that a server gives a runner, and the runner's words to the server, as JSON
// (docs/serve.md). The server decides what is judged; the terms that it may set are listed, since
// others name files and programs of this machine. Pure, but for JobFiles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace assay {

struct NamedSource {
  std::string name, source;
};

struct TakenJob {
  std::string id, lease;
  double lease_s = 60, seconds_max = 600;
  std::string problem;              // its name
  std::optional<std::string> file;  // the problem's; nullopt: that of the installed suite
  std::string problem_hash;         // SHA-256 of its file
  std::string size, set;            // set: a JSON object
  NamedSource candidate;
  std::optional<NamedSource> opponent;
  std::string terms;  // JSON: as in a worker's request, without the above
};

// `job` has the id and the lease even after an error, if they could be read. Errors: kEnvironment,
// since the server speaks another version.
Result<void> ParseTakenJob(const std::string& body, TakenJob* job);

// Returns those of a request's terms that do not name the problem, a file or a program. `text`: a
// JSON object; `is_check` is set if it asks for correctness alone. Errors (kUsage): no object, or a
// term that is not known.
Result<std::string> AllowedTerms(const std::string& text, bool* is_check);

// Files of jobs, by content, so that a worker's sessions stay warm.
class JobFiles {
 public:
  static Result<JobFiles> Create();
  // Returns the path of a file with this name and content. Errors: kUsage (a name that is a path),
  // kEnvironment.
  Result<std::string> Path(const NamedSource& file);

 private:
  explicit JobFiles(TemporaryFolder folder) : folder_(std::move(folder)) {}

  TemporaryFolder folder_;
  std::vector<std::string> folders_;  // oldest first
};

struct InstalledFile {
  std::string path, hash;
};
// Returns the file of a problem of these suites; nullopt: none has it.
std::optional<InstalledFile> InstalledProblem(const std::string& name,
                                              const std::vector<std::string>& suites);

// The id of the request in a worker's line, and in its events.
inline constexpr const char* kJobRequestId = "job";

// Returns the line with which a worker judges the job on `device`. `suites`: folders of installed
// ones. Errors: kUsage (the job is wrong), kEnvironment (this machine has another version of the
// problem, or cannot write).
Result<std::string> WorkerLine(const TakenJob& job, const std::string& device,
                               const std::vector<std::string>& suites, JobFiles& files);

struct RunnerFacts {
  std::string name, device, version;
  std::string machine;  // a profile's JSON; empty: not measured
};
std::string TakeBody(const RunnerFacts& facts, int wait_s);
// `event`: a worker's line; empty: none.
std::string ProgressBody(const std::string& lease, const std::string& event);
// `verdict`: JSON.
std::string VerdictBody(const std::string& lease, const std::string& verdict);
// The kind of an error as servers and queues keep it: "usage", "environment", "interrupted", or
// "unjudged", which no runner like this can mend.
std::string_view JobErrorKind(ErrorKind kind);
std::string ErrorBody(const std::string& lease, const Error& error);

// Reads a flag of a reply: "go_on", "counted"; `otherwise` if it is not there.
bool FlagOf(const std::string& body, const char* name, bool otherwise);

}  // namespace assay
