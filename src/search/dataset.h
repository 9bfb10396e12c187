// Datasets for training, made of samples: a line of JSON each (docs/datasets.md,
// docs/dataset.schema.json). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "search/reward.h"
#include "search/samples.h"

namespace assay {

enum class DatasetKind {
  kVerified,    // a reference, a correct kernel, and the verdict's figures
  kSft,         // a prompt, and an answer whose candidate is certified faster
  kPreference,  // a prompt, a better answer and a worse one
  kRl,          // the turns of a chain, with rewards and returns
  kFouls,       // candidates that broke a rule; they are in no other set but rl
  kKernelBook,  // verified pairs of Python in the columns of KernelBook
};
// "verified", "sft", "preference", "rl", "fouls", "kernelbook". Errors: kUsage.
Result<DatasetKind> DatasetKindFromName(std::string_view name);

struct DatasetTerms {
  RewardRules rewards;      // `p` is also the threshold of sft
  double test_share = 0.1;  // of the problems: those by their hash are in split "test"
  std::string licence;      // of the answers, as the user says it; may be empty
  // The source of a verdict's problem file, if its hash is still that of the record.
  std::function<std::optional<std::string>(const ProblemRecord&)> reference;
};

struct Dataset {
  std::vector<std::string> lines;  // without ends
  int64_t left_out = 0;            // samples that would belong, but lack something
  std::string lacking;             // what: "the problem's file"; empty where none
};

// Each kind's samples in their order.
Dataset MakeDataset(DatasetKind kind, const std::vector<Sample>& samples,
                    const DatasetTerms& terms);

// "test" or "train", by the SHA-256 of a problem's file: never both for one problem.
std::string_view SplitOf(const ProblemRecord& problem, double test_share);

}  // namespace assay
