#include "model/machine_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kSchema = "assay.machine/1";

Json ToJson(const Ceilings& ceilings) {
  return {{"threads", ceilings.threads},
          {"read_bytes_s", ceilings.read_bytes_s},
          {"copy_bytes_s", ceilings.copy_bytes_s},
          {"triad_bytes_s", ceilings.triad_bytes_s},
          {"float32_operations_s", ceilings.float32_operations_s},
          {"float64_operations_s", ceilings.float64_operations_s}};
}

Ceilings ReadCeilings(const Json& json) {
  Ceilings ceilings;
  ceilings.threads = json.at("threads").get<int>();
  ceilings.read_bytes_s = json.at("read_bytes_s").get<double>();
  ceilings.copy_bytes_s = json.at("copy_bytes_s").get<double>();
  ceilings.triad_bytes_s = json.at("triad_bytes_s").get<double>();
  json.at("float32_operations_s").get_to(ceilings.float32_operations_s);
  json.at("float64_operations_s").get_to(ceilings.float64_operations_s);
  return ceilings;
}

// Keys end with their unit: "best_bytes_s".
Json RatesToJson(const std::map<std::string, GpuRate>& rates, const std::string& unit) {
  Json json = Json::object();
  for (const auto& [name, rate] : rates)
    json[name] = {{"best_" + unit, rate.best}, {"median_" + unit, rate.median}, {"how", rate.how}};
  return json;
}

std::map<std::string, GpuRate> ReadRates(const Json& json, const std::string& unit) {
  std::map<std::string, GpuRate> rates;
  for (const auto& [name, rate] : json.items())
    rates[name] = {rate.at("best_" + unit).get<double>(), rate.at("median_" + unit).get<double>(),
                   rate.at("how").get<std::string>()};
  return rates;
}

Json ToJson(const GpuCeilings& gpu) {
  return {{"created", gpu.created},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"architecture", gpu.architecture},
          {"driver_version", gpu.driver_version},
          {"l2_bytes", gpu.l2_bytes},
          {"traffic", RatesToJson(gpu.traffic, "bytes_s")},
          {"arithmetic", RatesToJson(gpu.arithmetic, "operations_s")},
          {"launch_ns", gpu.launch_ns},
          {"launch_and_wait_ns", gpu.launch_and_wait_ns},
          {"notes", gpu.notes}};
}

GpuCeilings ReadGpu(const Json& json) {
  GpuCeilings gpu;
  gpu.created = json.at("created").get<std::string>();
  gpu.name = json.at("name").get<std::string>();
  gpu.uuid = json.at("uuid").get<std::string>();
  gpu.architecture = json.at("architecture").get<std::string>();
  gpu.driver_version = json.at("driver_version").get<int>();
  gpu.l2_bytes = json.at("l2_bytes").get<uint64_t>();
  gpu.traffic = ReadRates(json.at("traffic"), "bytes_s");
  gpu.arithmetic = ReadRates(json.at("arithmetic"), "operations_s");
  gpu.launch_ns = json.at("launch_ns").get<double>();
  gpu.launch_and_wait_ns = json.at("launch_and_wait_ns").get<double>();
  json.at("notes").get_to(gpu.notes);
  return gpu;
}

MachineProfile Read(const Json& json) {
  MachineProfile profile;
  profile.created = json.at("created").get<std::string>();
  profile.cpu = json.at("cpu").get<std::string>();
  profile.cores = json.at("cores").get<int>();
  for (const Json& cache : json.at("caches"))
    profile.caches.push_back({cache.at("level").get<int>(), cache.at("size_bytes").get<uint64_t>(),
                              cache.at("cores").get<int>()});
  for (const Json& ceilings : json.at("ceilings"))
    profile.ceilings.push_back(ReadCeilings(ceilings));
  profile.empty_call_ns = json.at("empty_call_ns").get<double>();
  profile.empty_python_call_ns = json.at("empty_python_call_ns").get<double>();
  for (const Json& point : json.at("noise"))
    profile.noise.push_back({point.at("call_ns").get<double>(), point.at("delta").get<double>(),
                             point.at("clear_margin").get<double>()});
  // Profiles of the time before GPUs have none.
  if (const auto gpus = json.find("gpus"); gpus != json.end())
    for (const Json& gpu : *gpus) profile.gpus.push_back(ReadGpu(gpu));
  return profile;
}

}  // namespace

std::string MachineProfileToJson(const MachineProfile& profile) {
  Json caches = Json::array(), ceilings = Json::array(), noise = Json::array();
  Json gpus = Json::array();
  for (const CacheLevel& cache : profile.caches)
    caches.push_back(
        {{"level", cache.level}, {"size_bytes", cache.size_bytes}, {"cores", cache.cores}});
  for (const Ceilings& measured : profile.ceilings) ceilings.push_back(ToJson(measured));
  for (const NoisePoint& point : profile.noise)
    noise.push_back(
        {{"call_ns", point.call_ns}, {"delta", point.delta}, {"clear_margin", point.clear_margin}});
  for (const GpuCeilings& gpu : profile.gpus) gpus.push_back(ToJson(gpu));
  const Json document = {{"schema", kSchema},
                         {"created", profile.created},
                         {"cpu", profile.cpu},
                         {"cores", profile.cores},
                         {"caches", caches},
                         {"ceilings", ceilings},
                         {"empty_call_ns", profile.empty_call_ns},
                         {"empty_python_call_ns", profile.empty_python_call_ns},
                         {"noise", noise},
                         {"gpus", gpus}};
  return document.dump(2);
}

Result<MachineProfile> MachineProfileFromJson(std::string_view text) {
  try {
    const Json document = Json::parse(text);
    if (document.at("schema").get<std::string>() != kSchema)
      return UsageError(fmt::format("not a machine's profile: its schema is not {}", kSchema));
    return Read(document);
  } catch (const Json::exception& exception) {
    return UsageError(fmt::format("not a machine's profile: {}", exception.what()));
  }
}

namespace {

void Scale(std::map<std::string, double>& rates, double factor,
           const std::map<std::string, double>& most) {
  for (auto& [name, rate] : rates) {
    const auto all = most.find(name);
    rate = all == most.end() ? rate * factor : std::min(rate * factor, all->second);
  }
}

}  // namespace

const GpuCeilings* FindGpuCeilings(const MachineProfile& profile, std::string_view uuid,
                                   int driver_version) {
  for (const GpuCeilings& gpu : profile.gpus)
    if (gpu.uuid == uuid && gpu.driver_version == driver_version) return &gpu;
  return nullptr;
}

void KeepGpuCeilings(GpuCeilings ceilings, MachineProfile* profile) {
  std::erase_if(profile->gpus, [&](const GpuCeilings& gpu) { return gpu.uuid == ceilings.uuid; });
  profile->gpus.push_back(std::move(ceilings));
}

double BestRate(const std::map<std::string, GpuRate>& rates, const std::string& name) {
  const auto found = rates.find(name);
  return found == rates.end() ? 0 : found->second.best;
}

Ceilings CeilingsFor(const MachineProfile& profile, int threads) {
  const auto& measured = profile.ceilings;
  const auto exact = std::find_if(measured.begin(), measured.end(),
                                  [=](const Ceilings& one) { return one.threads == threads; });
  if (exact != measured.end()) return *exact;
  if (measured.empty()) return {};
  const Ceilings& all = measured.back();
  if (threads >= all.threads) return all;
  Ceilings scaled = measured.front();
  const double factor = static_cast<double>(threads) / scaled.threads;
  scaled.threads = threads;
  scaled.read_bytes_s = std::min(scaled.read_bytes_s * factor, all.read_bytes_s);
  scaled.copy_bytes_s = std::min(scaled.copy_bytes_s * factor, all.copy_bytes_s);
  scaled.triad_bytes_s = std::min(scaled.triad_bytes_s * factor, all.triad_bytes_s);
  Scale(scaled.float32_operations_s, factor, all.float32_operations_s);
  Scale(scaled.float64_operations_s, factor, all.float64_operations_s);
  return scaled;
}

double BandwidthFor(const Ceilings& ceilings, double written_share) {
  constexpr double kTriad = 1.0 / 3, kCopy = 1.0 / 2;
  const double share = std::clamp(written_share, 0.0, kCopy);
  if (share <= kTriad)
    return std::lerp(ceilings.read_bytes_s, ceilings.triad_bytes_s, share / kTriad);
  return std::lerp(ceilings.triad_bytes_s, ceilings.copy_bytes_s,
                   (share - kTriad) / (kCopy - kTriad));
}

double GpuBandwidthFor(const GpuCeilings& ceilings, double written_share) {
  constexpr double kCopy = 1.0 / 2;
  const double share = std::clamp(written_share, 0.0, kCopy);
  return std::lerp(BestRate(ceilings.traffic, "read"), BestRate(ceilings.traffic, "copy"),
                   share / kCopy);
}

Rate RateFor(const Ceilings& ceilings, bool float64) {
  Rate best;
  for (const auto& [name, rate] :
       float64 ? ceilings.float64_operations_s : ceilings.float32_operations_s)
    if (rate > best.operations_s) best = {rate, name};
  return best;
}

}  // namespace assay
