// The archive of a server: a file of its folder, or a PostgreSQL database.
#pragma once

#include <memory>
#include <string>

#include "archive/store.h"
#include "base/result.h"
#include "serve/database.h"

namespace assay {

// `place`: a URL; empty: the folder's own file. The folder keeps the database's name, so that the
// server does not mix two archives; at the first use of one the board is made anew. Errors
// (kUsage): the place is no URL, or not the folder's; else as OpenStore.
Result<std::unique_ptr<Store>> OpenHallArchive(Database& database, const std::string& place);

}  // namespace assay
