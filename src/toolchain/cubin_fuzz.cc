// Machine code that was made beside a stranger's source: whatever its bytes, views stay inside of
// it.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "toolchain/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  for (const std::string_view cubin : assay::FindCubins(file))
    ASSAY_CHECK(cubin.data() > file.data() && cubin.data() + cubin.size() <= file.data() + size);
  for (const assay::CompiledKernel& kernel : assay::ReadCubin(file)) {
    ASSAY_CHECK(kernel.registers >= 0 && kernel.stack_bytes >= 0 && kernel.shared_bytes >= 0);
    ASSAY_CHECK(kernel.name.size() <= size);
    assay::KernelDisplayName(kernel.name);
  }
  return 0;
}
