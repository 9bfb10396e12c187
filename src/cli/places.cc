#include "cli/places.h"

#include <fmt/format.h>

#include "gpu/gpu.h"
#include "report/text.h"

namespace assay {

Result<std::vector<WorkerPlace>> PlacesOf(const std::vector<std::string>& devices) {
  std::vector<WorkerPlace> places;
  const std::vector<std::string> gpus = GpuNames();
  if (devices.empty())
    return std::vector<WorkerPlace>{{gpus.empty() ? std::string("cpu") : std::string("cuda"), ""}};
  for (const std::string& device : devices) {
    if (device == "cpu" || device == "cuda") {
      places.push_back({device, ""});
      continue;
    }
    const std::string number = device.starts_with("cuda:") ? device.substr(5) : "";
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos)
      return UsageError(
          fmt::format("--devices {}: give cpu, or GPUs such as cuda:0,cuda:1", device));
    if (number.size() > 4 || std::stoul(number) >= gpus.size())
      return EnvironmentError(fmt::format("--devices {}: this machine shows {}", device,
                                          Counted(static_cast<long long>(gpus.size()), "GPU")));
    places.push_back({"cuda", number});
  }
  for (const WorkerPlace& place : places)
    if (place.device != places.front().device)
      return UsageError(
          "--devices takes either cpu or GPUs: what is timed on both at once is noise");
  if (places.size() > 1 && places.front().visible_gpu.empty())
    return UsageError("--devices names a device twice: give GPUs as cuda:0,cuda:1");
  return places;
}

}  // namespace assay
