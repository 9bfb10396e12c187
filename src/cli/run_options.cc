// The options of assay run and of its workers.
#include <CLI/CLI.hpp>

#include "cli/options.h"
#include "cli/validators.h"

namespace assay {
namespace {

// The machines that judge, and the places that verdicts go to besides the results.
void AddKeeping(RunOptions* options, CLI::App& command) {
  options->cluster.AddTo(command);
  command.add_flag("--no-save", options->no_save,
                   "Keep the verdicts in the results alone: neither for assay explain, nor in the "
                   "archive");
  AddArchiveOption(command, &options->archive);
}

void AddPilotOptions(WorkerCommandOptions* options, CLI::App& command, CLI::Option* server) {
  CLI::Option* queue =
      command
          .add_option("--queue", options->queue,
                      "Take work from this queue, a folder that all machines share, in place of "
                      "reading requests from stdin")
          ->excludes(server);
  command
      .add_option("--stop-after", options->stop_after_s,
                  "Seconds until a pilot hands back what it has and ends (default: never)")
      ->needs(queue)
      ->check(AboveZero());
  command
      .add_option("--idle-stop", options->idle_stop_s,
                  "Seconds without work after which a pilot ends (default: never)")
      ->needs(queue)
      ->check(AboveZero());
  command
      .add_option("--lease", options->lease_s,
                  "Seconds of silence after which a pilot's work goes to another")
      ->needs(queue)
      ->capture_default_str()
      ->check(AboveZero());
  command
      .add_flag("--measure", options->measure,
                "Measure the device's ceilings first, so that a slow node is told from its class")
      ->needs(queue);
  command
      .add_flag("--stop-with-input", options->stop_with_input,
                "A pilot ends when its input does, as over ssh")
      ->needs(queue);
}

// The terms of a verdict: another choice is another verdict.
void AddTerms(RunOptions* options, CLI::App& command) {
  command
      .add_option("--baseline", options->asked.baselines,
                  "The reference to beat, as in assay judge: eager, compiled, best...")
      ->capture_default_str();
  command.add_option("--p", options->asked.threshold, "Speedup that candidates must exceed")
      ->capture_default_str();
  command
      .add_option("--threads", options->asked.threads,
                  "Threads of each side (default: all cores but one)")
      ->check(Between(1, 4096));
  command
      .add_option("--weights", options->asked.weights,
                  "Weights of timed calls, as in assay judge: varied, constant or constructed")
      ->check(CLI::IsMember({"varied", "constant", "constructed"}));
  command
      .add_option("--state", options->asked.state,
                  "Whether what forward changes in its module is compared, as in assay judge: "
                  "compared or ignored")
      ->check(CLI::IsMember({"compared", "ignored"}));
  command.add_option("--tolerance", options->asked.tolerance,
                     "How outputs are compared: error-ratio (default), or allclose:1e-4 for "
                     "KernelBench's rule");
  command
      .add_option("--timeout", options->asked.limits.timeout_s, "Seconds that one call may take")
      ->capture_default_str()
      ->check(AboveZero());
  command
      .add_option("--build-timeout", options->asked.limits.build_timeout_s,
                  "Seconds that building may take (default: 60, or 300 where PyTorch compiles an "
                  "extension)")
      ->check(AboveZero());
  command.add_option("--memory", options->asked.limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command
      .add_option("--budget", options->asked.effort.speed_budget_s,
                  "Seconds for gate 2, speed, of each candidate against each baseline")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_flag("--full", options->full,
                   "Measure what cannot win to the end: whether it is slower, or a tie");
  command.add_flag("--one-size", options->asked.one_size,
                   "Check each problem's own size alone: candidates may be wrong at others");
  command.add_flag("--correctness-only", options->asked.effort.correctness_only,
                   "Stop after gate 1, correctness");
}

}  // namespace

void ClusterOptions::AddTo(CLI::App& command) {
  CLI::Option* by_slurm =
      command.add_flag("--slurm", slurm, "Judge on the nodes of a Slurm cluster (docs/cluster.md)");
  command.add_option("--ssh", ssh, "Judge on these hosts, such as a,b, over ssh")
      ->delimiter(',')
      ->excludes(by_slurm);
  command.add_option(
      "--queue", queue,
      "Queue of the work: a folder that all machines share (default with --slurm and "
      "--ssh: one in the folder of the results, the search or the server). Alone: pilots are "
      "started by hand");
  command.add_option("--nodes", nodes, "Workers that --slurm starts")
      ->capture_default_str()
      ->check(Between(1, 10000));
  command.add_option("--partition", partition, "Slurm's partition")->needs(by_slurm);
  command.add_option("--gres", gres, "What Slurm gives each worker, such as gpu:1")
      ->needs(by_slurm);
  command.add_option("--time", time, "Slurm's time limit of a worker, such as 30, 2:00:00 or 1-12")
      ->needs(by_slurm);
  command.add_option("--bundle", bundle,
                     "An archive of scripts/bundle, which each node unpacks (default: the nodes "
                     "have this program at the same path)");
  command
      .add_option("--lease", lease_s,
                  "Seconds of silence after which a worker's work goes to another")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--idle-stop", idle_stop_s, "Seconds without work after which a worker ends")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_flag("--check-nodes", check_nodes,
                   "Measure each node first; one that is slower than its class gets no work");
}

void RunOptions::AddTo(CLI::App& command) {
  command
      .add_option("CANDIDATES", paths,
                  "A KernelBench run folder, a folder of candidates named as their problems, "
                  "candidates, or a manifest (.jsonl)")
      ->required();
  command.add_option("--problems", problems,
                     "A checkout of KernelBench, a suite, or a folder of problems (default: the "
                     "installed suites)");
  command.add_option("--size", size, "Named size of a suite's problems, such as small");
  command.add_option("--sizes", sizes,
                     "A file with constants of problems: [level1] and 23_Softmax = { dim = 4096 }");
  command.add_flag("--grad", asked.problem.gradients,
                   "Judge each problem with its gradients: forward and backward are one call "
                   "(docs/problems.md)");
  command.add_option("--only", only,
                     "Only candidates whose file names fit, such as 'level_1_problem_2?_*'");
  command.add_option("--results", results,
                     "Folder for the results (default: the one with the candidates)");
  command
      .add_option("--devices", devices,
                  "Where to judge: cpu, or GPUs such as cuda:0,cuda:1 (default: the first GPU, "
                  "where there is one)")
      ->delimiter(',');
  command
      .add_option("--workers", workers,
                  "Workers of each GPU: one measures at a time, while the others build and check "
                  "(default: by the number of cores, 8 at most)")
      ->check(Between(1, 16));
  AddKeeping(this, command);
  command.add_flag("--dry-run", dry_run, "Judge nothing: print the plan");
  command.add_flag("--again", again, "Judge what was judged before, too");
  AddTerms(this, command);
  command.add_option("--python", asked.python, "Python interpreter that has PyTorch");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", verbose, "Progress as plain lines");
  command.footer(
      "Every verdict is kept the moment it stands; the same command again goes on.\n"
      "Examples:\n"
      "  assay run runs/NAME --problems KernelBench\n"
      "  assay run runs/NAME --problems KernelBench --dry-run\n"
      "  assay run kernels/softmax --size small --correctness-only\n\n"
      "Exit codes: 0 every candidate has its verdict, good or bad; 2 usage, or some of what was "
      "asked for cannot be judged;\n"
      "8 this machine lacks something; 130 interrupted.");
}

void WorkerCommandOptions::AddTo(CLI::App& command) {
  command.add_option(
      "--device", device,
      "Judge on cpu or cuda alone (default: as each request needs). With --server also "
      "a GPU such as cuda:1 (default: the GPU where there is one)");
  command.add_option("--cores", cores, "Cores that it may use, such as 0,1 (default: all)")
      ->delimiter(',')
      ->check(Between(0, 1023));
  command
      .add_option("--measuring-cores", measuring_cores,
                  "Cores on which it measures alone, beside those of --cores for all else "
                  "(default: those of --cores)")
      ->delimiter(',')
      ->check(Between(0, 1023));
  command
      .add_option("--sharers", sharers,
                  "Workers that share the device and the memory, this one included")
      ->capture_default_str()
      ->check(Between(1, 64));
  command.add_option(
      "--memory", memory,
      "Memory that open sessions may take, such as 8G (default: half of what is free)");
  command.add_option("--sessions", sessions, "Problems that stay open at a time")
      ->capture_default_str()
      ->check(Between(1, 1024));
  CLI::Option* url = command.add_option(
      "--server", server,
      "Ask this assay serve for jobs, over HTTP, in place of reading requests from stdin");
  command
      .add_option("--token-file", token_file,
                  "File with the server's token (default: $ASSAY_TOKEN)")
      ->needs(url);
  command.add_option("--name", name,
                     "The name of a runner or a pilot (default: the machine's and the device's)");
  AddPilotOptions(this, command, url);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Reads requests and writes events as JSON lines (docs/worker.md). It ends when its input "
      "ends, or by SIGTERM. With --server it is a runner (docs/serve.md): it judges the server's "
      "jobs until Ctrl-C. With --queue it is a pilot (docs/cluster.md).\n"
      "Examples:\n  assay worker < requests.jsonl\n"
      "  assay worker --server https://assay.example.org --token-file token --device cuda\n\n"
      "Exit codes: 0 its input ended; 2 usage, or the server does not accept the token; 8 this "
      "machine lacks something;\n130 a runner was interrupted.");
}

}  // namespace assay
