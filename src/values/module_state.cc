#include "values/module_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "wire/types.h"

namespace assay {
namespace {

constexpr uint64_t kStateBytesMax = 64 << 20;
constexpr int64_t kElementsMax = kStateBytesMax;

}  // namespace

uint64_t StateTensor::end() const {
  return offset +
         static_cast<uint64_t>(count) * wire::ElementBytes(static_cast<wire::DType>(dtype));
}

Result<SharedRegion> StateMemory() {
  ASSAY_ASSIGN_OR_RETURN(SharedRegion memory, SharedRegion::Create("assay-state", kStateBytesMax));
  ASSAY_RETURN_IF_ERROR(memory.SealSize());
  return memory;
}

Result<std::vector<StateTensor>> ParseState(std::string_view text, uint64_t memory_bytes) {
  std::vector<StateTensor> tensors;
  try {
    for (const auto& item : nlohmann::json::parse(text)) {
      StateTensor tensor;
      tensor.name = item.at("name").get<std::string>();
      tensor.dtype = static_cast<DType>(item.at("dtype").get<uint32_t>());
      tensor.shape = item.at("shape").get<std::vector<int64_t>>();
      tensor.offset = item.at("offset").get<uint64_t>();
      tensor.count = 1;
      bool sound = true;
      for (const int64_t size : tensor.shape) {
        sound = sound && size >= 0 && size <= kElementsMax && tensor.count <= kElementsMax;
        if (sound) tensor.count *= size;
      }
      const uint64_t element = wire::ElementBytes(static_cast<wire::DType>(tensor.dtype));
      sound = sound && element > 0 && tensor.offset <= memory_bytes &&
              static_cast<uint64_t>(tensor.count) <= (memory_bytes - tensor.offset) / element;
      if (!sound)
        return EnvironmentError(
            fmt::format("the reference host described a state '{}' that cannot be", tensor.name));
      tensors.push_back(std::move(tensor));
    }
  } catch (const nlohmann::json::exception& exception) {
    return EnvironmentError(
        fmt::format("the reference host's state cannot be read: {}", exception.what()));
  }
  return tensors;
}

}  // namespace assay
