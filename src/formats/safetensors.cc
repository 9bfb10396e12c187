#include "formats/safetensors.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::json;

struct KnownType {
  const char* name;  // PyTorch's
  uint64_t bytes;
};

const std::map<std::string, KnownType> kTypes = {{"F64", {"float64", 8}}, {"F32", {"float32", 4}},
                                                 {"F16", {"float16", 2}}, {"BF16", {"bfloat16", 2}},
                                                 {"I64", {"int64", 8}},   {"I32", {"int32", 4}},
                                                 {"I16", {"int16", 2}},   {"I8", {"int8", 1}},
                                                 {"U8", {"uint8", 1}},    {"BOOL", {"bool", 1}}};

// The number of bytes of a tensor; nullopt: a size that is none, or too many.
std::optional<uint64_t> BytesOf(const std::vector<int64_t>& shape, uint64_t element) {
  uint64_t bytes = element;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto factor = static_cast<uint64_t>(size);
    if (factor > 0 && bytes > std::numeric_limits<uint64_t>::max() / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

}  // namespace

Result<StoredTensor> ReadStoredTensor(std::string_view file, const std::string& name) {
  uint64_t length = 0;
  if (file.size() >= sizeof length) std::memcpy(&length, file.data(), sizeof length);
  if (length == 0 || length > file.size() - sizeof length)
    return UsageError("it is no safetensors file: its header does not fit");
  const Json header = Json::parse(file.substr(sizeof length, length), nullptr, false);
  if (!header.is_object()) return UsageError("it is no safetensors file: its header is no JSON");
  const auto entry = header.find(name);
  if (entry == header.end()) return UsageError(fmt::format("it has no tensor '{}'", name));
  StoredTensor tensor;
  uint64_t begin = 0, end = 0;
  try {
    const auto known = kTypes.find(entry->at("dtype").get<std::string>());
    if (known == kTypes.end())
      return UsageError(fmt::format("the dtype of '{}' is not supported", name));
    tensor.dtype = known->second.name;
    tensor.shape = entry->at("shape").get<std::vector<int64_t>>();
    begin = entry->at("data_offsets").at(0).get<uint64_t>();
    end = entry->at("data_offsets").at(1).get<uint64_t>();
    const auto bytes = BytesOf(tensor.shape, known->second.bytes);
    if (begin > end || end > file.size() - sizeof length - length || bytes != end - begin)
      return UsageError(fmt::format("the bytes of '{}' do not fit its shape or the file", name));
  } catch (const Json::exception&) {
    return UsageError(fmt::format("the entry of '{}' lacks dtype, shape or data_offsets", name));
  }
  tensor.bytes = file.substr(sizeof length + length + begin, end - begin);
  return tensor;
}

}  // namespace assay
