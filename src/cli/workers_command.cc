#include "cli/workers_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/validators.h"
#include "cluster/worker_table.h"
#include "queue/open_queue.h"

namespace assay {
namespace {

Result<void> Show(const WorkersOptions& options) {
  std::error_code code;
  if (options.place.find("://") == std::string::npos &&
      !std::filesystem::exists(options.place, code))
    return UsageError(options.place + ": there is no such queue");
  ASSAY_ASSIGN_OR_RETURN(const auto queue, OpenQueue(options.place, {options.lease_s}));
  if (!options.drain.empty()) ASSAY_RETURN_IF_ERROR(queue->Drain(options.drain, options.why));
  if (!options.resume.empty()) ASSAY_RETURN_IF_ERROR(queue->Drain(options.resume, ""));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<KnownWorker> workers, queue->Workers());
  ASSAY_ASSIGN_OR_RETURN(const QueueCounts counts, queue->Counts(""));
  const std::string text = options.json ? WorkersJson(workers, counts, options.lease_s)
                                        : WorkerTable(workers, counts, options.lease_s);
  std::fputs(text.c_str(), stdout);
  return {};
}

}  // namespace

void WorkersOptions::AddTo(CLI::App& command) {
  command.add_option("PLACE", place, "The queue: a folder that all machines share")->required();
  command
      .add_option("--lease", lease_s, "Seconds of silence after which a worker is told as silent")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_flag("--json", json, "As one document of JSON");
  CLI::Option* drained = command.add_option("--drain", drain, "Give this worker no more work");
  why = "by hand";
  command.add_option("--why", why, "Why it is drained")->needs(drained)->capture_default_str();
  command.add_option("--resume", resume, "Give this drained worker work again");
  command.footer(
      "Shows nodes, devices, what each does, rates and faults.\n"
      "Examples:\n"
      "  assay workers runs/NAME/queue\n"
      "  assay workers runs/NAME/queue --drain n3-cuda-4711 --why 'it is hot'\n\n"
      "Exit codes: 0 shown; 2 usage; 8 the queue cannot be used.");
}

int RunWorkers(const WorkersOptions& options) {
  const auto shown = Show(options);
  return shown ? kExitGood
               : ReportError(shown.error(), options.json ? JsonForm::kDocument : JsonForm::kNone);
}

}  // namespace assay
