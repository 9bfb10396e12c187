#include "web/api.h"
#include "web/openapi_text.h"

namespace assay {

std::string_view OpenApiText() { return kOpenApi; }

}  // namespace assay
