// The importers, one a format; docs/formats.md has the layouts.
#pragma once

#include "formats/imported.h"

namespace assay {

Result<Imported> ImportCudaL1(const ImportRequest& request);
Result<Imported> ImportCudaL2(const ImportRequest& request);
Result<Imported> ImportRobustKbench(const ImportRequest& request);
Result<Imported> ImportKernelBenchHard(const ImportRequest& request);
Result<Imported> ImportKernelBook(const ImportRequest& request);
Result<Imported> ImportAiCudaEngineer(const ImportRequest& request);
Result<Imported> ImportPopcorn(const ImportRequest& request);
Result<Imported> ImportFlashInfer(const ImportRequest& request);

}  // namespace assay
