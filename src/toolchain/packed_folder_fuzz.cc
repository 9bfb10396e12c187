// Any bytes as a packed folder: it is refused, or its parts make it again.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "toolchain/packed_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto folder = assay::UnpackFolder(text)) {
    ASSAY_CHECK(assay::IsPackedFolder(text));
    ASSAY_CHECK(assay::WithEntryText(text, folder->EntryText()) == text);
  }
  return 0;
}
