// An archive by its place: the file of an SQLite database, or the URL of a PostgreSQL one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "archive/store.h"
#include "base/stop_token.h"

namespace assay {

enum class StoreAccess { kWrite, kRead };

struct OpenStoreOptions {
  StopToken stop = {};
  std::function<void(const std::string&)> tell = nullptr;  // of a database that stays away
};

// With kWrite, makes the archive where it is missing. Errors: SqliteStore and PostgresStore.
Result<std::unique_ptr<Store>> OpenStore(const std::string& place, StoreAccess access,
                                         OpenStoreOptions options = {});

// False: it is a file, and is missing.
bool StoreMayExist(const std::string& place);
// The place as messages show it: without a password.
std::string StoreName(const std::string& place);

}  // namespace assay
