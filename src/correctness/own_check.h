// Judges outputs by the problem's own check, in the place of a comparison with the reference.
//
// Theory of operation. The outputs are a copy that the judge made, so the candidate cannot change
// them meanwhile. Bytes that are the reference's own are right: it passed the check itself, or is
// the answer by definition. What was never written, and NaN where the reference has none, is wrong
// whatever the check says. About all else the check is asked, in the oracle's host: the one that
// holds the problem's file, the draw and PyTorch, and which no candidate reaches.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "correctness/call_check.h"

namespace assay {

// Asks the check about outputs, laid out as in a slot. Returns what is wrong; nullopt: nothing.
using AskCheck =
    std::function<HostResult<std::optional<std::string>>(std::span<const std::byte> outputs)>;

// Judges `outputs`; the views' candidate lies in them. A failure has no mismatch, since no element
// is expected; its error ratio is infinite. Trouble of the check is in `trouble`.
CallCheck CheckByProblem(std::span<const OutputView> views, std::span<const std::byte> outputs,
                         const AskCheck& ask);

// Asks the check about the reference's own outputs of the draw in `master`.
HostResult<std::optional<std::string>> AskAboutReference(Oracle& oracle, uint32_t master);

}  // namespace assay
