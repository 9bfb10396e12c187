// The style and the script of every page. They stand in the page itself, and the header of the
// reply names them by their hashes: nothing else is applied or run. Pure.
#pragma once

#include <string_view>

namespace assay {

std::string_view PageStyleText();
std::string_view PageScriptText();

// The value of Content-Security-Policy for all pages.
std::string_view PageSecurityPolicy();

}  // namespace assay
