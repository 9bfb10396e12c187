// Tars by libarchive, which loads a dozen libraries: a shared library of its own, opened when a tar
// is read or written (tar.h).
#pragma once

#include "serve/tar.h"

namespace assay {

Result<std::vector<TarFile>> ReadTar(std::string_view bytes, const TarLimits& limits);
Result<std::string> WriteTar(std::span<const TarFile> files, TarForm form);

}  // namespace assay
