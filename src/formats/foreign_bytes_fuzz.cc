// Tables and tensors of strangers: the first byte chooses the reader, and what a reader accepts
// lies inside of the file.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "formats/foreign_rows.h"
#include "formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'c') {
    if (const auto rows = assay::ParseCsv(file))
      for (const auto& row : *rows) ASSAY_CHECK(row.is_object() && row.size() <= size);
    return 0;
  }
  if (const auto tensor = assay::ReadStoredTensor(file, "x"))
    ASSAY_CHECK(tensor->bytes.size() <= size && !tensor->dtype.empty());
  return 0;
}
