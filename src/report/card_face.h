// The word, the symbol and the colours of an outcome on a card. Pure.
#pragma once

#include "model/outcome.h"
#include "report/frame.h"

namespace assay {

struct Face {
  const char* word;
  const char* symbol;
  const char* ascii_symbol;
  Tone badge;
  Tone tone;
};

Face FaceOf(Outcome outcome);

}  // namespace assay
