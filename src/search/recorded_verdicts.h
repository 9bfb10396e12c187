// Takes verdicts from an archive, by the candidate's source: policies are compared without a
// machine. Nothing is judged.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "archive/store.h"
#include "base/result.h"
#include "search/sources.h"

namespace assay {

class RecordedVerdicts : public VerdictSource {
 public:
  // Reads the verdicts on `problem` that were given on terms of one of these two kinds, as
  // TermsText writes them; how much time a judgement might take may differ. The archive must
  // outlive this object. Errors: it cannot be read; it has no such verdict (kUsage).
  static Result<RecordedVerdicts> Read(Store& archive, const std::string& problem,
                                       const std::string& screening_terms,
                                       const std::string& confirming_terms);

  void Add(JudgeTask task) override { waiting_.push_back(std::move(task)); }
  // A candidate has the verdict on its own source.
  void Know(const std::string& /*artifact*/) override {}
  void Race(double /*bound*/) override {}
  // One at a time, in the order in which they were added. A candidate without a verdict has an
  // error, and is free.
  Result<std::vector<JudgedTask>> Wait(int timeout_ms) override;
  std::vector<JudgedTask> Stop() override { return {}; }
  size_t judged_at_once() const override { return 1; }

  // Candidates on which there is a verdict: of the first look, of the second.
  size_t screened() const { return contents_[0].size(); }
  size_t confirmed() const { return contents_[1].size(); }

 private:
  explicit RecordedVerdicts(Store& archive) : archive_(&archive), contents_(2) {}

  Store* archive_;
  // Hash of the source -> hash of its first verdict; of first looks, then of second ones.
  std::vector<std::map<std::string, std::string>> contents_;
  std::vector<JudgeTask> waiting_;
};

}  // namespace assay
