// The kernels that a search begins from because they were fast elsewhere (--port).
#pragma once

#include <string>
#include <vector>

#include "archive/record.h"
#include "base/result.h"
#include "search/journal.h"
#include "search/writer.h"

namespace assay {

// Reads verdicts with their sources. `given`: VERDICT, the first digits of its hash or its id, or
// VERDICT@ARCHIVE; without a name the archive is `archive`. Errors (kUsage): there is none, it has
// no source, or is of another problem or form.
Result<std::vector<PortedKernel>> ReadPortedKernels(const std::vector<std::string>& given,
                                                    const std::string& archive,
                                                    const std::string& problem,
                                                    const std::string& form);

// Their candidates and verdicts, which the search's archive keeps if it lacks them.
Result<std::vector<NewRecord>> RecordsOfPorts(const SearchSettings& settings);

// As attempts of elsewhere, with the words that stand for each in prompts.
Result<std::vector<Tried>> TriedElsewhere(const std::vector<PortedKernel>& ports);

}  // namespace assay
