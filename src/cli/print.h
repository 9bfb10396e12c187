// Text for the user, on stdout.
#pragma once

#include <string>

namespace assay {

// Prints the text and flushes, so that a reader of a pipe has it at once.
void Print(const std::string& text);

}  // namespace assay
