// A tar that somebody sends: what is accepted keeps to its bounds and leads nowhere else.
#include <set>

#include "base/check.h"
#include "serve/tar_library.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const TarLimits limits{.files_max = 50, .bytes_max = 1 << 20};
  const auto files = ReadTar({reinterpret_cast<const char*>(data), size}, limits);
  if (!files) {
    ASSAY_CHECK(files.error().kind == ErrorKind::kUsage && !files.error().message.empty());
    for (const char c : files.error().message) ASSAY_CHECK(static_cast<unsigned char>(c) >= 0x20);
    return 0;
  }
  size_t bytes = 0;
  std::set<std::string> paths;
  for (const TarFile& file : *files) {
    bytes += file.content.size();
    ASSAY_CHECK(paths.insert(file.path).second);
    const std::string around = "/" + file.path + "/";
    ASSAY_CHECK(around.find("/../") == std::string::npos);
    ASSAY_CHECK(around.find("//") == std::string::npos);
    ASSAY_CHECK(around.find("/./") == std::string::npos);
  }
  ASSAY_CHECK(files->size() <= limits.files_max && bytes <= limits.bytes_max);
  // Files that were read can be written and read again.
  const auto again = WriteTar(*files, TarForm::kPlain);
  ASSAY_CHECK(again.has_value());
  if (!files->empty()) ASSAY_CHECK(ReadTar(*again, limits)->size() == files->size());
  return 0;
}
