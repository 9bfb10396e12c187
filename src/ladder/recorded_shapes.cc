#include "ladder/recorded_shapes.h"

#include <sstream>

#include "ladder/climb.h"
#include "ladder/readme_table.h"
#include "ladder/rows.h"
#include "model/dtype.h"

namespace assay {
namespace {

std::optional<wire::Role> RoleFromName(std::string_view name) {
  if (name == "input") return wire::Role::kInput;
  if (name == "parameter") return wire::Role::kParameter;
  if (name == "output") return wire::Role::kOutput;
  return std::nullopt;
}

// Of "input x float32[4096, 8192]".
std::optional<wire::ArgumentSpec> TensorOf(const std::string& line) {
  const size_t bracket = line.find('[');
  if (bracket == std::string::npos || !line.ends_with(']')) return std::nullopt;
  std::istringstream words(line.substr(0, bracket));
  std::string role_name, name, dtype_name;
  words >> role_name >> name >> dtype_name;
  const auto role = RoleFromName(role_name);
  const auto dtype = DTypeFromName(dtype_name);
  if (!role || !dtype || name.empty() || name.size() >= wire::kNameBytes) return std::nullopt;
  wire::ArgumentSpec spec{};
  name.copy(spec.name, wire::kNameBytes - 1);
  spec.role = *role;
  spec.kind = wire::Kind::kTensor;
  spec.dtype = *dtype;
  spec.size_bytes = wire::ElementBytes(*dtype);
  std::istringstream numbers(line.substr(bracket + 1));
  for (int64_t length = 0; numbers >> length; numbers.ignore(1)) {
    if (length < 0 || spec.rank == std::size(spec.shape)) return std::nullopt;
    spec.shape[spec.rank++] = length;
    if (__builtin_mul_overflow(spec.size_bytes, static_cast<uint64_t>(length), &spec.size_bytes))
      return std::nullopt;
  }
  return spec;
}

}  // namespace

std::optional<ProblemDescription> DescriptionOf(const std::vector<std::string>& signature) {
  ProblemDescription description;
  for (const std::string& line : signature) {
    const auto tensor = TensorOf(line);
    if (!tensor) return std::nullopt;
    description.arguments.push_back(*tensor);
  }
  return description;
}

std::optional<ProblemDescription> RecordedDescription(const Ladder& ladder,
                                                      const LadderSize& size) {
  const auto path = ResultsPath(ladder);
  const auto rows = path ? ReadRows(*path, ladder.name) : Result<std::vector<LadderRow>>();
  if (!rows) return std::nullopt;
  for (const RungResult& result : NewestResults(ladder, size, ladder.rungs, *rows))
    if (result.row) return DescriptionOf(result.row->verdict.problem.signature);
  return std::nullopt;
}

}  // namespace assay
