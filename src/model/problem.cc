#include "model/problem.h"

#include <fmt/format.h>

#include "model/dtype.h"

namespace assay {

std::string DescribeArgument(const wire::ArgumentSpec& argument) {
  const char* role = argument.role == wire::Role::kInput       ? "input"
                     : argument.role == wire::Role::kParameter ? "parameter"
                                                               : "output";
  switch (argument.kind) {
    case wire::Kind::kInt:
      return fmt::format("{} {} int", role, argument.name);
    case wire::Kind::kFloat:
      return fmt::format("{} {} float", role, argument.name);
    case wire::Kind::kBool:
      return fmt::format("{} {} bool", role, argument.name);
    case wire::Kind::kTensor:
      break;
  }
  std::string shape;
  for (uint32_t i = 0; i < argument.rank; ++i)
    shape += fmt::format("{}{}", i == 0 ? "" : ", ", argument.shape[i]);
  const bool changed = argument.role == wire::Role::kInput && argument.twin != 0;
  return fmt::format("{} {} {}[{}]{}", role, argument.name, DTypeName(argument.dtype), shape,
                     changed ? ", which forward changes" : "");
}

}  // namespace assay
