#include "cluster/node_classes.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/median.h"

namespace assay {
namespace {

constexpr double kSlowerMost = 0.8, kNoisierMost = 2;
constexpr size_t kOthersMin = 2;
constexpr const char* kNoise = "noise";

std::map<std::string, double> MeasuresOf(const KnownWorker& worker) {
  std::map<std::string, double> measures;
  const auto json = nlohmann::json::parse(worker.facts.measures, nullptr, false);
  if (!json.is_object()) return measures;
  for (const auto& [name, value] : json.items())
    if (value.is_number() && value.get<double>() > 0) measures[name] = value.get<double>();
  return measures;
}

}  // namespace

std::vector<OddNode> OddNodes(std::span<const KnownWorker> workers) {
  // By class and measure: the value of each node.
  std::map<std::string, std::map<std::string, double>> of_class;
  const auto class_of = [](const KnownWorker& worker, const std::string& name) {
    return worker.facts.device + "\n" + worker.facts.model + "\n" + name;
  };
  for (const KnownWorker& worker : workers)
    for (const auto& [name, value] : MeasuresOf(worker))
      of_class[class_of(worker, name)][worker.facts.node] = value;
  std::vector<OddNode> odd;
  for (const KnownWorker& worker : workers) {
    if (!worker.drained.empty()) continue;
    for (const auto& [name, value] : MeasuresOf(worker)) {
      std::vector<double> others;
      for (const auto& [node, of_node] : of_class[class_of(worker, name)])
        if (node != worker.facts.node) others.push_back(of_node);
      if (others.size() < kOthersMin) continue;
      const double usual = Median(others);
      const bool is_odd =
          name == kNoise ? value > usual * kNoisierMost : value < usual * kSlowerMost;
      if (!is_odd) continue;
      odd.push_back({worker.facts.name,
                     fmt::format("its {} is {:.3g}, and that of other nodes with {} {:.3g}", name,
                                 value, worker.facts.model, usual)});
      break;
    }
  }
  return odd;
}

}  // namespace assay
