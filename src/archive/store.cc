#include "archive/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace assay {
namespace {

constexpr int64_t kPageRecords = 1000;
constexpr int64_t kPassedOverMax = 10'000;

// Walks along the chain.
class ChainCheck {
 public:
  explicit ChainCheck(Store& store) : store_(store) { report_.head = kFirstParent; }

  bool full() const { return report_.faults.size() >= kChainFaultsMax; }
  ChainReport& report() { return report_; }

  void Add(const Record& record) {
    ++report_.records;
    if (record.sequence != last_ + 1)
      Fault(record, fmt::format("record {} is missing before it", last_ + 1));
    if (!unknown_ && record.parent != report_.head)
      Fault(record, "it does not name the record before it");
    unknown_ = false;
    if (RecordHash(record) != record.hash) Fault(record, "it was changed");
    for (const std::string* hash : {&record.content, &record.source, &record.terms}) {
      if (hash->empty() || !checked_.insert(*hash).second) continue;
      if (const auto bytes = store_.Get(*hash); !bytes) Fault(record, bytes.error().message);
    }
    last_ = record.sequence;
    report_.head = record.hash;
  }

  void PassOver(int64_t sequence, const Error& error) {
    Fault(sequence, error.message);
    last_ = sequence;
    unknown_ = true;
  }

 private:
  void Fault(const Record& record, const std::string& what) { Fault(record.sequence, what); }
  void Fault(int64_t sequence, const std::string& what) {
    const std::string fault = fmt::format("record {}: {}", sequence, what);
    if (full() || (!report_.faults.empty() && report_.faults.back() == fault)) return;
    report_.faults.push_back(fault);
  }

  Store& store_;
  int64_t last_ = 0;
  bool unknown_ = false;                     // the record before could not be read
  std::unordered_set<std::string> checked_;  // hashes of bytes
  ChainReport report_;
};

}  // namespace

Result<void> ForEachRecord(Store& store, const std::function<bool(const Record&)>& take,
                           const std::function<bool(int64_t sequence, const Error&)>& unreadable) {
  RecordQuery query;
  query.oldest_first = true;
  std::optional<int64_t> newest;  // is looked for after a failure; nullopt: it is unreadable, too
  int64_t singles = 0, in_a_row = 0;
  bool any = false;
  while (true) {
    query.limit = singles > 0 ? 1 : kPageRecords;
    const auto page = store.Find(query);
    if (page) {
      if (page->empty()) return {};
      for (const Record& record : *page)
        if (!take(record)) return {};
      any = true;
      in_a_row = 0;
      query.after = page->back().sequence;
      singles = std::max<int64_t>(0, singles - 1);
      continue;
    }
    if (singles == 0) {  // somewhere in the page
      singles = kPageRecords;
      RecordQuery last;
      last.limit = 1;
      if (const auto found = store.Find(last))
        newest = found->empty() ? 0 : found->front().sequence;
      continue;
    }
    if (newest ? query.after >= *newest : in_a_row >= kPassedOverMax) {
      if (!any) return std::unexpected(page.error());
      return {};
    }
    ++query.after;
    // How many are at a damaged end is not known: the first is told for all.
    const bool told = newest || in_a_row == 0;
    ++in_a_row;
    if (told && !unreadable(query.after, page.error())) return {};
  }
}

Result<ChainReport> VerifyChain(Store& store) {
  ChainCheck check(store);
  ASSAY_RETURN_IF_ERROR(ForEachRecord(
      store,
      [&](const Record& record) {
        check.Add(record);
        return !check.full();
      },
      [&](int64_t sequence, const Error& error) {
        check.PassOver(sequence, error);
        return !check.full();
      }));
  return std::move(check.report());
}

}  // namespace assay
