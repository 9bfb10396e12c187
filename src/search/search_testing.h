// Doubles for the tests of searches: workers that judge by a function of the source.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "archive/store.h"
#include "model/sample_verdicts.h"
#include "propose/proposer.h"
#include "worker_client/fleet.h"

namespace assay {

// A verdict with this ratio; 0: it is wrong.
inline Verdict VerdictWith(double ratio, const std::string& id) {
  Verdict verdict = SampleVerdict(ratio <= 0  ? Outcome::kWrong
                                  : ratio > 1 ? Outcome::kFaster
                                              : Outcome::kSlower);
  verdict.id = id;
  verdict.candidate.artifact.clear();
  if (ratio > 0)
    for (auto& [name, baseline] : verdict.speed->baselines) {
      baseline.speedup = ratio;
      baseline.ci_low = 0.98 * ratio;
      baseline.ci_high = 1.02 * ratio;
    }
  return verdict;
}

// Answers each request at once, candidate after candidate.
class ScriptedFleet : public Fleet {
 public:
  // A source's ratio.
  using Score = std::function<double(const std::string& source)>;
  // A worker's reply to a request in place of verdicts, such as an error; nullopt: verdicts.
  using Trouble =
      std::function<std::optional<std::vector<std::string>>(const std::string& request)>;
  static constexpr const char* kDies = "it dies";

  explicit ScriptedFleet(Score score, size_t workers = 1)
      : score_(std::move(score)), started_(workers) {}
  Trouble trouble = [](const std::string&) { return std::nullopt; };
  // A source's artifact; empty: it has none, as in Python.
  std::function<std::string(const std::string& source)> artifact = [](const std::string&) {
    return std::string();
  };
  std::vector<std::string> requests;
  std::vector<int> started() const { return started_; }

  size_t size() const override { return started_.size(); }
  std::string Name(size_t) const override { return "cpu"; }
  Result<void> Start(size_t worker, int) override {
    Kill(worker);
    ++started_[worker];
    return {};
  }
  void Send(size_t worker, const std::string& line) override;
  void Kill(size_t worker) override {
    std::erase_if(said_, [&](const Said& said) { return said.worker == worker; });
  }
  void Release(size_t worker) override { said_.push_back({worker, std::nullopt, "ended"}); }
  // Verdicts that stand are said; the rest is not.
  void Interrupt(size_t worker) override {
    while (said_.size() > 1) said_.pop_back();
    Release(worker);
  }
  std::optional<Said> Wait(int) override {
    if (said_.empty()) return std::nullopt;
    Said said = said_.front();
    said_.pop_front();
    if (!said.line) Kill(said.worker);
    return said;
  }

 private:
  void Say(size_t worker, const std::string& line) {
    if (line == kDies)
      said_.push_back({worker, std::nullopt, "was killed by signal 9"});
    else
      said_.push_back({worker, line, ""});
  }

  const Score score_;
  std::vector<int> started_;
  std::deque<Said> said_;
};

// Answers with a function of the prompt.
class FakeProposer : public Proposer {
 public:
  using Reply = std::function<Result<Answer>(const Prompt& prompt)>;
  explicit FakeProposer(Reply reply) : reply_(std::move(reply)) {}
  std::string Name() const override { return "fake"; }
  Usage Reservation(const Prompt&) const override { return {100, 100, 0.5, 0}; }
  Result<void> Check(const Prompt& prompt) const override {
    if (prompt.text.contains("SECRET")) return UsageError("the prompt contains the key");
    return {};
  }
  bool IsFree() const override { return is_free; }
  Result<Answer> Propose(const Prompt& prompt, StopToken) override { return reply_(prompt); }
  bool is_free = false;

 private:
  const Reply reply_;
};

// Counts how often records are written.
class CountingStore : public Store {
 public:
  explicit CountingStore(Store& store) : store_(store) {}
  int appends = 0;

  Result<std::string> Put(std::string_view bytes) override { return store_.Put(bytes); }
  Result<std::string> Get(const std::string& hash) override { return store_.Get(hash); }
  Result<std::vector<Record>> Append(std::span<const NewRecord> records) override {
    ++appends;
    return store_.Append(records);
  }
  Result<std::vector<Record>> Find(const RecordQuery& query) override { return store_.Find(query); }
  Result<int64_t> Adopt(std::span<const Record> records,
                        std::span<const std::string> bytes) override {
    return store_.Adopt(records, bytes);
  }

 private:
  Store& store_;
};

}  // namespace assay
