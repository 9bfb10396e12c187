#include "serve/tar.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace assay {

Result<TarLibrary> TarLibrary::Open(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const read = handle == nullptr ? nullptr : ::dlsym(handle, "AssayReadTar");
  void* const write = handle == nullptr ? nullptr : ::dlsym(handle, "AssayWriteTar");
  if (read == nullptr || write == nullptr) {
    const char* why = ::dlerror();
    return EnvironmentError(
        fmt::format("worklogs of a class need libarchive (Debian: libarchive13): {}",
                    why != nullptr ? why : library));
  }
  return TarLibrary(reinterpret_cast<ReadFunction*>(read), reinterpret_cast<WriteFunction*>(write));
}

Result<std::vector<TarFile>> TarLibrary::Read(std::string_view bytes,
                                              const TarLimits& limits) const {
  return read_(bytes, limits);
}

Result<std::string> TarLibrary::Write(std::span<const TarFile> files, TarForm form) const {
  return write_(files, form);
}

}  // namespace assay
