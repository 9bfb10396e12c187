// Rows of a table in any notation that corpora come in.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/imported.h"

namespace assay {

// Rows as JSON objects, from a .jsonl, .json (a list; an object of lists, as CUDA-L1's codes/; or a
// stream of objects, a line each), .csv or .parquet file. Errors (kUsage) name the file, and the
// line where there is one.
Result<std::vector<nlohmann::ordered_json>> ReadForeignRows(const std::string& path,
                                                            const ForeignReader& read);

// Rows of a CSV file (RFC 4180) whose first line has the names of the columns; every value is text.
Result<std::vector<nlohmann::ordered_json>> ParseCsv(std::string_view text);

// The member as text; numbers and booleans as JSON writes them; empty if it is missing or null.
std::string TextOf(const nlohmann::ordered_json& row, std::string_view key);
// The member as a number, also if it is text; null if it is none.
nlohmann::ordered_json NumberOf(const nlohmann::ordered_json& row, std::string_view key);

}  // namespace assay
