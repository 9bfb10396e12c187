// How fast the archive takes records: durable appends a second, one record and sixteen at a time;
// then fills it. Prints a JSON object a case (bench/archive.py adds what commands take on it).
//
//   archive_bench FILE RECORDS
//
// A record has 1,500 bytes of content, about what a result of a search has.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "archive/sqlite_store.h"
#include "base/clock.h"

namespace assay {
namespace {

constexpr size_t kContentBytes = 1500;
constexpr int64_t kFillBatch = 1000;
constexpr double kSeconds = 5;

std::vector<NewRecord> Records(int64_t first, int64_t count) {
  std::vector<NewRecord> records;
  for (int64_t i = first; i < first + count; ++i) {
    NewRecord record;
    const bool step = i % 2 == 0;
    record.facts = {step ? RecordKind::kStep : RecordKind::kResult, fmt::format("judge/{}", i / 2),
                    fmt::format("{:012x}", i / 1000), fmt::format("problem_{}", i % 250), ""};
    record.content = fmt::format("{{\"record\": {}, \"filler\": \"", i);
    record.content.resize(kContentBytes, 'x');
    records.push_back(std::move(record));
  }
  return records;
}

int64_t Append(Store& store, int64_t first, int64_t count) {
  const auto appended = store.Append(Records(first, count));
  if (!appended) {
    fmt::print(stderr, "archive_bench: {}\n", appended.error().message);
    std::exit(1);
  }
  return first + count;
}

int Run(const std::string& path, int64_t most) {
  auto store = SqliteStore::Open(path);
  if (!store) {
    fmt::print(stderr, "archive_bench: {}\n", store.error().message);
    return 1;
  }
  int64_t count = 0;
  for (const int64_t batch : {1, 16}) {
    const int64_t begin_ns = MonotonicNs(), first = count;
    while (static_cast<double>(MonotonicNs() - begin_ns) < kSeconds * 1e9)
      count = Append(**store, count, batch);
    const double seconds = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
    fmt::print("{{\"what\": \"append\", \"batch\": {}, \"records\": {}, \"seconds\": {:.3f}}}\n",
               batch, count - first, seconds);
  }
  const int64_t begin_ns = MonotonicNs(), first = count;
  while (count < most) count = Append(**store, count, std::min(kFillBatch, most - count));
  fmt::print("{{\"what\": \"fill\", \"batch\": {}, \"records\": {}, \"seconds\": {:.3f}}}\n",
             kFillBatch, count - first, static_cast<double>(MonotonicNs() - begin_ns) / 1e9);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) {
  if (count != 3) {
    fmt::print(stderr, "archive_bench FILE RECORDS\n");
    return 2;
  }
  return assay::Run(arguments[1], std::atoll(arguments[2]));
}
