#include "cluster/worker_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/text.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::array<std::string, 8>;

constexpr size_t kDoingShown = 24, kModelShown = 32;

std::string StateOf(const KnownWorker& worker, double lease_s) {
  if (worker.silent_s > lease_s) return "silent";
  if (!worker.drained.empty()) return "drained";
  return worker.doing.empty() ? "idle" : "busy";
}

std::string Cut(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

}  // namespace

std::string WorkerTable(std::span<const KnownWorker> workers, const QueueCounts& counts,
                        double lease_s) {
  std::string text =
      fmt::format("{} queued, {} claimed, {} judged, {} without a verdict, {} taken out\n",
                  counts.queued, counts.claimed, counts.judged, counts.failed, counts.cancelled);
  if (workers.empty()) return text + "no worker has been heard\n";
  std::vector<Row> rows{
      {"NODE", "DEVICE", "MODEL", "STATE", "JUDGED", "AN HOUR", "FAULTS", "DOING"}};
  for (const KnownWorker& worker : workers)
    rows.push_back({worker.facts.node, worker.facts.device, Cut(worker.facts.model, kModelShown),
                    StateOf(worker, lease_s), fmt::format("{}", worker.judged),
                    fmt::format("{:.0f}", worker.judged_an_hour), fmt::format("{}", worker.faults),
                    Cut(worker.doing, kDoingShown)});
  std::array<size_t, 8> widths{};
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += Printable(line, true) + "\n";
  }
  for (const KnownWorker& worker : workers)
    if (!worker.drained.empty())
      text += Printable(fmt::format("{} is drained: {}", worker.facts.name, worker.drained), true) +
              "\n";
  return text;
}

std::string WorkersJson(std::span<const KnownWorker> workers, const QueueCounts& counts,
                        double lease_s) {
  Json json = {{"schema", "assay.workers/1"},
               {"works",
                {{"queued", counts.queued},
                 {"claimed", counts.claimed},
                 {"judged", counts.judged},
                 {"failed", counts.failed},
                 {"cancelled", counts.cancelled}}},
               {"workers", Json::array()}};
  for (const KnownWorker& worker : workers) {
    Json measures = Json::parse(worker.facts.measures, nullptr, false);
    json["workers"].push_back({{"name", worker.facts.name},
                               {"node", worker.facts.node},
                               {"device", worker.facts.device},
                               {"model", worker.facts.model},
                               {"version", worker.facts.version},
                               {"job", worker.facts.job},
                               {"measures", measures.is_object() ? measures : Json::object()},
                               {"state", StateOf(worker, lease_s)},
                               {"silent_s", worker.silent_s},
                               {"doing", worker.doing},
                               {"judged", worker.judged},
                               {"judged_an_hour", worker.judged_an_hour},
                               {"faults", worker.faults},
                               {"drained", worker.drained}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay
