// An append-only store of records and of the bytes that they are about. Engines implement it;
// store_conformance_test.h has the tests that each must pass.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/record.h"
#include "base/result.h"

namespace assay {

// Which records to read. Empty or 0: any.
struct RecordQuery {
  std::optional<RecordKind> kind = {};
  std::string problem = {}, outcome = {};
  std::string id = {};
  std::string reference = {};  // the first digits of a record's hash or content, or a verdict's id
  int64_t after = 0;           // sequence numbers above this one
  bool oldest_first = false;   // else the newest
  int64_t limit = 0;
};

// One thread at a time uses a store. Errors (kEnvironment) leave what stands in it as it was.
class Store {
 public:
  virtual ~Store() = default;

  // Keeps bytes, once; returns their SHA-256.
  virtual Result<std::string> Put(std::string_view bytes) = 0;
  // Errors: there are none of this hash, or they were changed.
  virtual Result<std::string> Get(const std::string& hash) = 0;
  // Appends all of them, or after an error none. When it returns, they survive the end of any
  // process, and a power failure where the disk honours a flush. Returns those that were not left
  // out.
  virtual Result<std::vector<Record>> Append(std::span<const NewRecord> records) = 0;
  virtual Result<std::vector<Record>> Find(const RecordQuery& query) = 0;
  // Appends records of another store as they stand there, and the bytes that they are about; all or
  // none. The first continues this store's chain, or is in it. Returns how many were not yet here.
  virtual Result<int64_t> Adopt(std::span<const Record> records,
                                std::span<const std::string> bytes) = 0;
};

// Reads all records, oldest first, until one of the two returns false. `unreadable` hears of each
// sequence number whose record is damaged, or missing among such. Errors: nothing can be read.
Result<void> ForEachRecord(Store& store, const std::function<bool(const Record&)>& take,
                           const std::function<bool(int64_t sequence, const Error&)>& unreadable);

struct ChainReport {
  int64_t records = 0;
  std::string head;                 // hash of the last record
  std::vector<std::string> faults;  // one line each, at most kChainFaultsMax; empty: whole
};

inline constexpr size_t kChainFaultsMax = 20;

// Reads all that the store has. Tells changed bytes, and records that were changed, taken out or
// put in. Records taken off the end show only in `head`. Errors: nothing can be read.
Result<ChainReport> VerifyChain(Store& store);

}  // namespace assay
