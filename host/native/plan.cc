#include "plan.h"

namespace assay::native {
namespace {

using wire::ArgumentSpec;
using wire::DType;
using wire::Kind;
using wire::Plan;
using wire::Role;

constexpr uint64_t kAlignmentBytes = 64;
constexpr uint32_t kSlotsMax = 1 << 20;
constexpr uint32_t kDeclarationBytesMax = 2000;

const char* ElementName(uint32_t dtype, AssayLanguage language) {
  switch (dtype) {
    case ASSAY_FLOAT64:
      return "double";
    case ASSAY_FLOAT32:
      return "float";
    case ASSAY_FLOAT16:
      return language == ASSAY_LANGUAGE_C ? "assay_float16" : "assay::float16";
    case ASSAY_BFLOAT16:
      return language == ASSAY_LANGUAGE_C ? "assay_bfloat16" : "assay::bfloat16";
    case ASSAY_INT64:
      return "int64_t";
    case ASSAY_INT32:
      return "int32_t";
    case ASSAY_INT16:
      return "int16_t";
    case ASSAY_INT8:
      return "int8_t";
    case ASSAY_UINT8:
      return "uint8_t";
    case ASSAY_BOOL:
      return "bool";
    case ASSAY_FLOAT8_E4M3:
      return language == ASSAY_LANGUAGE_C ? "assay_float8_e4m3" : "assay::float8_e4m3";
    case ASSAY_FLOAT8_E5M2:
      return language == ASSAY_LANGUAGE_C ? "assay_float8_e5m2" : "assay::float8_e5m2";
    case ASSAY_INT4X2:
      return "int4x2";
    case ASSAY_UINT4X2:
      return "uint4x2";
    case ASSAY_FLOAT4_E2M1X2:
      return "float4_e2m1x2";
    default:
      return "(an unknown type)";
  }
}

const char* ScalarName(uint32_t kind) {
  switch (kind) {
    case ASSAY_KIND_INT:
      return "int64_t";
    case ASSAY_KIND_FLOAT:
      return "double";
    case ASSAY_KIND_BOOL:
      return "bool";
    case ASSAY_KIND_STREAM:
      return "cudaStream_t";
    default:
      return "(unknown)";
  }
}

constexpr AssayParameter kStream = {ASSAY_KIND_STREAM, 0, 0, 0};

AssayParameter ParameterOf(const ArgumentSpec& argument) {
  if (argument.kind != Kind::kTensor) return {static_cast<uint32_t>(argument.kind), 0, 0, 0};
  return {ASSAY_KIND_TENSOR, static_cast<uint32_t>(argument.dtype), argument.rank,
          argument.role == Role::kOutput || argument.twin != 0 ? 1u : 0u};
}

bool Same(const AssayParameter& a, const AssayParameter& b) {
  if (a.kind != b.kind) return false;
  if (a.kind != ASSAY_KIND_TENSOR) return true;
  return a.dtype == b.dtype && a.rank == b.rank && (a.is_output != 0) == (b.is_output != 0);
}

// "const float, rank 2" or "int64_t (a scalar)"
void AddParameter(const AssayParameter& parameter, AssayLanguage language, Text& message) {
  if (parameter.kind != ASSAY_KIND_TENSOR) {
    message.Add(ScalarName(parameter.kind));
    message.Add(parameter.kind == ASSAY_KIND_STREAM ? "" : " (a scalar)");
    return;
  }
  message.Add(parameter.is_output != 0 ? "" : "const ").Add(ElementName(parameter.dtype, language));
  if (parameter.dtype > ASSAY_FLOAT8_E5M2 && parameter.dtype <= ASSAY_FLOAT4_E2M1X2)
    message.Add(" (reserved: this version of Assay cannot pass it)");
  message.Add(", rank ").Add(int64_t{parameter.rank});
}

const char* RoleName(Role role) {
  switch (role) {
    case Role::kInput:
      return "input";
    case Role::kParameter:
      return "parameter";
    case Role::kOutput:
      return "output";
  }
  return "argument";
}

void AddShape(const ArgumentSpec& argument, Text& message) {
  if (argument.kind != Kind::kTensor) return;
  message.Add(" [");
  for (uint32_t axis = 0; axis < argument.rank; ++axis)
    message.Add(axis == 0 ? "" : ", ").Add(argument.shape[axis]);
  message.Add("]");
}

bool NameIsSound(const char* name) {
  for (uint32_t i = 0; i < wire::kNameBytes; ++i)
    if (name[i] == '\0') return i > 0;
  return false;
}

// The bytes that shape and dtype give, or false.
bool SizeOf(const ArgumentSpec& argument, uint64_t* size_bytes) {
  if (argument.kind != Kind::kTensor) {
    *size_bytes = 8;
    return argument.kind == Kind::kInt || argument.kind == Kind::kFloat ||
           argument.kind == Kind::kBool;
  }
  uint64_t bytes = wire::ElementBytes(argument.dtype);
  if (bytes == 0 || argument.rank > wire::kRankMax) return false;
  for (uint32_t axis = 0; axis < argument.rank; ++axis)
    if (argument.shape[axis] < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(argument.shape[axis]), &bytes))
      return false;
  *size_bytes = bytes;
  return true;
}

// Returns true if the argument has no twin, or one of its own shape that has it as its twin.
bool TwinIsSound(const Plan& plan, const ArgumentSpec& argument) {
  if (argument.twin == 0) return true;
  if (argument.twin > plan.argument_count || argument.role == Role::kParameter) return false;
  const ArgumentSpec& twin = plan.arguments[argument.twin - 1];
  const Role expected = argument.role == Role::kInput ? Role::kOutput : Role::kInput;
  return twin.role == expected &&
         twin.twin - 1 == static_cast<uint64_t>(&argument - plan.arguments) &&
         argument.kind == Kind::kTensor && twin.kind == Kind::kTensor &&
         twin.dtype == argument.dtype && twin.size_bytes == argument.size_bytes;
}

// Null when the argument is sound, else what is wrong with it.
const char* ArgumentProblem(const ArgumentSpec& argument, const Plan& plan,
                            const Regions& regions) {
  if (!NameIsSound(argument.name)) return "has no name";
  const wire::Region number = RegionOf(argument, regions);
  if (number == wire::Region{0}) return "has an unknown role";
  const Mapping& region = regions[number];
  const uint64_t stride = StrideOf(plan, argument.role);
  uint64_t size_bytes;
  if (!SizeOf(argument, &size_bytes)) return "has an unknown kind, dtype or shape";
  if (size_bytes != argument.size_bytes) return "has a size that its shape and dtype do not give";
  if (argument.kind != Kind::kTensor && argument.role != Role::kInput)
    return "is a scalar but not an input";
  if (!TwinIsSound(plan, argument)) return "has a twin that is none";
  if (region.data == nullptr) return "lies in a region that is not attached";
  if (argument.role == Role::kOutput && !region.writable)
    return "lies in a region that cannot be written";
  if (argument.offset % kAlignmentBytes != 0 || stride % kAlignmentBytes != 0)
    return "is not aligned to 64 bytes";
  uint64_t end, last;
  if (__builtin_add_overflow(argument.offset, size_bytes, &end)) return "does not fit its region";
  if (plan.slot_count > 1 && end > stride) return "does not fit its slot";
  if (plan.slot_count == 0) return nullptr;
  if (__builtin_mul_overflow(uint64_t{plan.slot_count} - 1, stride, &last) ||
      __builtin_add_overflow(last, end, &last) || last > region.size_bytes)
    return "does not fit its region";
  return nullptr;
}

}  // namespace

bool PlanIsSound(const Plan& plan, const Regions& regions, Text& message) {
  if (plan.argument_count == 0 || plan.argument_count > wire::kArgumentsMax ||
      plan.slot_count > kSlotsMax) {
    message.Add("the plan has ").Add(int64_t{plan.argument_count}).Add(" arguments and ");
    message.Add(int64_t{plan.slot_count}).Add(" slots, which the native host cannot serve");
    return false;
  }
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const char* problem = ArgumentProblem(plan.arguments[i], plan, regions);
    if (problem == nullptr) continue;
    message.Add("argument ").Add(int64_t{i} + 1).Add(" of the plan (");
    message.Add(plan.arguments[i].name, wire::kNameBytes).Add(") ").Add(problem);
    return false;
  }
  return true;
}

void AddDeclaration(const Plan& plan, AssayLanguage language, bool on_device, Text& message) {
  constexpr uint32_t kOnOneLine = 4;
  const bool c = language == ASSAY_LANGUAGE_C && !on_device;
  const uint32_t count = wire::PassedCount(plan);
  const char* const comma = count > kOnOneLine ? ",\n      " : ", ";
  message.Add(c ? "ASSAY_KERNEL_C(" : "ASSAY_KERNEL(");
  for (uint32_t i = 0; i < count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    const AssayParameter parameter = ParameterOf(argument);
    if (i > 0) message.Add(comma);
    if (parameter.kind != ASSAY_KIND_TENSOR) {
      if (c) message.Add("ASSAY_SCALAR(");
      message.Add(ScalarName(parameter.kind)).Add(c ? ", " : " ").Add(argument.name);
    } else {
      message.Add(c ? "ASSAY_TENSOR(" : "assay::Tensor<")
          .Add(parameter.is_output != 0 ? "" : "const ");
      message.Add(ElementName(parameter.dtype, language)).Add(", ").Add(int64_t{parameter.rank});
      message.Add(c ? ", " : "> ").Add(argument.name);
    }
    if (c) message.Add(")");
  }
  if (on_device) message.Add(comma).Add("cudaStream_t stream");
  message.Add(")");
}

bool SignatureFits(const AssayKernel& kernel, const Plan& plan, bool on_device, Text& message) {
  constexpr uint32_t kShownMax = 10;
  const AssayLanguage language =
      kernel.language == ASSAY_LANGUAGE_C ? ASSAY_LANGUAGE_C : ASSAY_LANGUAGE_CPP;
  const uint32_t declared = kernel.parameter_count;
  const uint32_t passed = wire::PassedCount(plan);
  const uint32_t needed = passed + (on_device ? 1 : 0);
  uint32_t wrong = declared == needed ? 0 : 1;
  const uint32_t common = declared < passed ? declared : passed;
  for (uint32_t i = 0; i < common; ++i)
    if (!Same(kernel.parameters[i], ParameterOf(plan.arguments[i]))) ++wrong;
  const bool stream_is_wrong =
      on_device && declared == needed && !Same(kernel.parameters[needed - 1], kStream);
  if (wrong == 0 && !stream_is_wrong) return true;

  message.Add(
      "the candidate's arguments are not the problem's (forward's inputs, then parameters, ");
  message.Add(on_device ? "then outputs, then the stream):\n" : "then outputs):\n");
  if (declared != needed) {
    message.Add("  it takes ")
        .Add(int64_t{declared})
        .Add(declared == 1 ? " argument, " : " arguments, ");
    message.Add("the problem has ").Add(int64_t{passed});
    message.Add(on_device ? " and the stream\n" : "\n");
  }
  uint32_t shown = 0;
  for (uint32_t i = 0; i < common && shown < kShownMax; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (Same(kernel.parameters[i], ParameterOf(argument))) continue;
    ++shown;
    message.Add("  argument ")
        .Add(int64_t{i} + 1)
        .Add(" is ")
        .Add(RoleName(argument.role))
        .Add(" ")
        .Add(argument.name);
    message.Add(argument.twin != 0 ? ", which forward changes in place: " : ": ");
    AddParameter(ParameterOf(argument), language, message);
    AddShape(argument, message);
    message.Add("; the candidate declares ");
    AddParameter(kernel.parameters[i], language, message);
    message.Add("\n");
  }
  if (stream_is_wrong) {
    message.Add("  the last argument is the stream, a cudaStream_t; the candidate declares ");
    AddParameter(kernel.parameters[needed - 1], language, message);
    message.Add("\n");
  }
  message.Add("the candidate declares:\n  ");
  if (kernel.declaration != nullptr) message.Add(kernel.declaration, kDeclarationBytesMax);
  message.Add("\nthe problem needs:\n  ");
  AddDeclaration(plan, language, on_device, message);
  return false;
}

}  // namespace assay::native
