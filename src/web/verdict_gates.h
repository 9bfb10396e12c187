// The sections of a verdict's page about its two gates. Pure.
#pragma once

#include "model/verdict.h"
#include "web/html.h"

namespace assay {

Html CorrectnessSection(const Verdict& verdict);
Html SpeedSection(const Verdict& verdict);

}  // namespace assay
