// Models: the parameters that they take, and their prices. A table in TOML
// (models.toml) is built in; a user's own goes before it (docs/proposers.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// The defaults are those of a model that no table names.
struct ModelFacts {
  bool takes_temperature = true;
  double temperature_max = 2;
  bool takes_seed = true;
  bool takes_stream_usage = true;  // the option that makes a stream end with its usage
  std::string tokens_field = "max_tokens";
  int64_t answer_tokens_max = 0;   // 0: not known
  double usd_in = 0, usd_out = 0;  // a million tokens
};

class ModelTable {
 public:
  // The built-in table, after that of `path` unless it is empty. Errors: kUsage, with the place.
  static Result<ModelTable> Load(const std::string& path);
  // The row with the longest name that fits, of the user's table if one fits there. A name that
  // ends with '*' fits all models that begin so.
  ModelFacts Find(std::string_view api, std::string_view model) const;

 private:
  struct Row {
    std::string api, name;
    ModelFacts facts;
  };
  using Rows = std::vector<Row>;
  static Result<Rows> Parse(std::string_view text, const std::string& path);
  static const Row* Best(const Rows& rows, std::string_view api, std::string_view model);

  Rows users_, built_in_;
};

}  // namespace assay
