// Command-line options shared by subcommands, and the subcommands themselves: each returns its exit
// code.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "session/asked_terms.h"
#include "session/judge.h"

namespace CLI {
class App;
}

namespace assay {

// PROBLEM, --size and --set; where it is added, --grad.
struct ProblemOptions {
  std::string problem;
  std::string size;
  std::vector<std::string> set;  // NAME=VALUE, as typed
  bool gradients = false;

  void AddTo(CLI::App& command);
  void AddGradTo(CLI::App& command);
  Result<ProblemChoice> Choice() const;
  Result<ProblemRequest> Resolve() const;
};

struct JudgeOptions {
  ProblemOptions problem;
  std::vector<std::string> candidates;
  AskedTerms asked;  // but for the problem
  std::string sanitize, archive;
  bool json = false, jsonl = false, quiet = false, verbose = false;
  bool no_save = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct NewOptions {
  ProblemOptions problem;
  std::string form = "native";
  std::string output;
  std::string python;
  bool force = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct ExplainOptions {
  std::string verdict;  // a file, or the id of a saved verdict
  std::string output;   // folder to write to
  std::string python;
  bool allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct ScoreOptions {
  std::vector<std::string> paths;  // files and folders; empty: the saved verdicts
  std::string suite;
  int level = 0;         // 0: all
  int64_t problems = 0;  // 0: as many as there are names of
  std::vector<double> thresholds;
  std::vector<int64_t> draws;
  std::string baseline;
  std::string svg, learning_svg, html;  // files to write
  bool json = false, any_machine = false, any_size = false, skip_broken = false;

  void AddTo(CLI::App& command);
};

struct ProblemListOptions {
  std::string suite;  // folder; empty: the installed ones
  int level = 0;      // 0: all
  std::string mechanism;
  bool json = false, names = false;

  void AddTo(CLI::App& command);
};

struct ProblemShowOptions {
  ProblemOptions problem;
  std::string python;
  int threads = 0;
  bool profile = false, json = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct AuditOptions {
  std::vector<std::string> problems;  // files, names, and folders of them
  std::string size;
  std::vector<std::string> set;  // NAME=VALUE, as typed
  int threads = 1, jobs = 0;     // jobs 0: as many as DefaultJobs() says
  std::string python, precision, tolerance;
  uint64_t seed = 0;
  bool ordinary_only = false;
  bool json = false, jsonl = false, quiet = false, verbose = false;

  void AddTo(CLI::App& command);
};

struct DoctorOptions {
  std::string python, device;
  bool quick = false, noise = false, json = false, quiet = false;

  void AddTo(CLI::App& command);
};

struct DemoOptions {
  std::string name, python, device = "cpu";

  void AddTo(CLI::App& command);
};

struct WorkerCommandOptions {
  std::string device, memory;
  std::vector<int> cores, measuring_cores;
  size_t sessions = 16;
  int sharers = 1;
  // Of a runner or a pilot; server and queue empty: JSON lines on stdin.
  std::string server, token_file, name, queue;
  double stop_after_s = 0, idle_stop_s = 0, lease_s = 60;  // of a pilot
  bool measure = false, stop_with_input = false;           // likewise
  bool allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

// The machines of a run, a search or a server, where they are others than this one.
struct ClusterOptions {
  std::string queue;             // a folder that all share; empty: one in the folder of results
  bool slurm = false;            // pilots as an array of jobs
  std::vector<std::string> ssh;  // hosts of pilots
  std::string partition, gres, time, bundle;
  int nodes = 1;
  double lease_s = 60, idle_stop_s = 600;
  bool check_nodes = false;

  void AddTo(CLI::App& command);
  bool asked() const { return slurm || !ssh.empty() || !queue.empty(); }
};

struct RunOptions {
  ClusterOptions cluster;
  std::vector<std::string> paths;  // a folder, candidates, or a manifest
  std::string problems, size, sizes, only;
  std::string results;               // folder; empty: the one with the candidates
  std::vector<std::string> devices;  // "cpu", "cuda:0"; empty: the GPU where there is one
  size_t workers = 0;                // of each GPU; 0: by the number of cores
  AskedTerms asked;                  // but for the problem and the device
  std::string archive;               // file; empty: the default
  bool dry_run = false, again = false, full = false, no_save = false;
  bool quiet = false, verbose = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct LadderOptions {
  std::string path;  // a folder, or one ladder*.toml
  std::string only, out, chart, device;
  std::vector<std::string> set;  // NAME=VALUE, as typed
  double minutes = 0;            // 0: no end
  AskedTerms asked;              // but for what a ladder's file says
  bool all_sizes = false, again = false, readme = false, check = false, recorded = false;
  bool quiet = false, verbose = false, no_save = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct RooflineOptions {
  std::string problem;
  std::vector<std::string> verdicts;  // files, ids
  std::string svg, archive;

  void AddTo(CLI::App& command);
};

struct SassOptions {
  std::string file;        // a .cu in the device form
  ProblemOptions problem;  // empty: that of the ladder whose rung the file is
  std::string architecture, python;
  bool whole = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct CompletionOptions {
  std::string shell;

  void AddTo(CLI::App& command);
};

struct ConfigOptions {
  std::string action;
  bool origin = false;

  void AddTo(CLI::App& command);
};

// Commands about the command line itself get it.
int RunCompletion(const CLI::App& app, const CompletionOptions& options);
int RunConfig(const CLI::App& app, const std::map<std::string, std::string>& origins,
              const ConfigOptions& options);
int RunProblemList(const ProblemListOptions& options);
int RunProblemShow(const ProblemShowOptions& options);
int RunAudit(const AuditOptions& options);
int RunDoctor(const DoctorOptions& options);
int RunDemo(const DemoOptions& options);
int RunJudge(const JudgeOptions& options);
int RunNew(const NewOptions& options);
int RunWorker(const WorkerCommandOptions& options);
int RunRun(const RunOptions& options);
int RunLadder(const LadderOptions& options);
int RunRoofline(const RooflineOptions& options);
int RunSass(const SassOptions& options);
int RunExplain(const ExplainOptions& options);
int RunScore(const ScoreOptions& options);

// Keeps a verdict under the state folder, so that `assay explain ID` and `assay score` find it;
// says so on stderr if it cannot.
// Returns true if it did.
bool KeepVerdict(const Verdict& verdict);

// Ctrl-C reaches every process of the terminal's group: what failed after it failed because of it.
Error UnlessInterrupted(Error error);

// The form of stdout that a command's --json and --jsonl ask for.
enum class JsonForm { kNone, kDocument, kLines };

// Prints "assay: MESSAGE" on stderr, and with JSON asked for the error on stdout, too; returns the
// error's exit code.
int ReportError(const Error& error, JsonForm form = JsonForm::kNone);
// The error as a document (assay.error/1), or as an event of --jsonl, in one line.
std::string ErrorDocument(const Error& error);
std::string ErrorEvent(const Error& error);
// Prints "assay: TEXT" to stderr.
void Notice(const std::string& text);

// --allow-weak-sandbox, of every command that runs foreign code.
inline constexpr const char* kAllowWeakSandbox = "allow-weak-sandbox";
void AddWeakSandboxFlag(CLI::App& command, bool* allowed);
// --archive, of every command that records what it judges, or reads that.
void AddArchiveOption(CLI::App& command, std::string* archive);
// If the flag was given, allows a weak sandbox, and says loudly on stderr what that means here.
void HeedWeakSandboxFlag(bool allowed);

// Set by the first Ctrl-C; the second ends the process.
const std::atomic<bool>& InstallInterruptHandler();

}  // namespace assay
