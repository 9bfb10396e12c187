// Pieces of SVG pictures. Pure.
#pragma once

#include <string>

namespace assay {

// Text for an element or an attribute, without characters that a reader cannot see.
std::string XmlEscaped(const std::string& text);

}  // namespace assay
