#include "archive/store.h"

#include <fmt/format.h>

#include <unordered_set>

namespace assay {
namespace {

constexpr int64_t kPageRecords = 1000;

// Walks along the chain.
class ChainCheck {
 public:
  explicit ChainCheck(Store& store) : store_(store) { report_.head = kFirstParent; }

  bool full() const { return report_.faults.size() >= kChainFaultsMax; }
  int64_t last() const { return last_; }
  ChainReport& report() { return report_; }

  void Add(const Record& record) {
    ++report_.records;
    if (record.sequence != last_ + 1)
      Fault(record, fmt::format("record {} is missing before it", last_ + 1));
    if (record.parent != report_.head) Fault(record, "it does not name the record before it");
    if (RecordHash(record) != record.hash) Fault(record, "it was changed");
    for (const std::string* hash : {&record.content, &record.source, &record.terms}) {
      if (hash->empty() || !checked_.insert(*hash).second) continue;
      if (const auto bytes = store_.Get(*hash); !bytes) Fault(record, bytes.error().message);
    }
    last_ = record.sequence;
    report_.head = record.hash;
  }

 private:
  void Fault(const Record& record, const std::string& what) {
    if (!full()) report_.faults.push_back(fmt::format("record {}: {}", record.sequence, what));
  }

  Store& store_;
  int64_t last_ = 0;
  std::unordered_set<std::string> checked_;  // hashes of bytes
  ChainReport report_;
};

}  // namespace

Result<ChainReport> VerifyChain(Store& store) {
  ChainCheck check(store);
  while (!check.full()) {
    RecordQuery query;
    query.after = check.last();
    query.oldest_first = true;
    query.limit = kPageRecords;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> page, store.Find(query));
    if (page.empty()) break;
    for (const Record& record : page) check.Add(record);
  }
  return std::move(check.report());
}

}  // namespace assay
