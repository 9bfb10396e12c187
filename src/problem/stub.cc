// The candidate that `assay new` writes: a comment on every argument, and a signature that fits and
// computes nothing; in Python, a copy of the reference.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <iterator>
#include <set>

#include "model/dtype.h"
#include "problem/gradients.h"
#include "problem/suite.h"
#include "wire/launches.h"

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::Kind;
using wire::Role;

enum class Form { kCpp, kC, kPython, kCuda, kDevice };

struct FormFacts {
  std::string_view name;  // of `--form`
  Form form;
  std::string_view suffix;
  std::string_view language;  // for people
};
constexpr FormFacts kForms[] = {{"native", Form::kCpp, ".cpp", "C++"},
                                {"c", Form::kC, ".c", "C"},
                                {"python", Form::kPython, ".py", "Python"},
                                {"cuda", Form::kCuda, ".cu", "CUDA"},
                                {"device", Form::kDevice, ".cu", "CUDA device"}};

const FormFacts& FactsOf(Form form) {
  return *std::find_if(std::begin(kForms), std::end(kForms),
                       [&](const FormFacts& facts) { return facts.form == form; });
}

// ASSAY_KERNEL_C expands its list at most this often (assay/kernel.h).
constexpr size_t kArgumentsMaxInC = 64;

// One argument as the stub names it.
struct StubArgument {
  const ArgumentSpec* spec;
  std::string name;
};

// Facts for the header, beside the problem and its arguments.
struct HeaderFacts {
  std::string layouts;  // of views; empty: none
  std::string file;     // the stub's
};

// Words that cannot name a parameter in C or C++, and type names that the signature itself uses.
constexpr auto kReservedWords =
    std::to_array<std::string_view>({"alignas",    "alignof",       "and",
                                     "and_eq",     "asm",           "assay",
                                     "auto",       "bitand",        "bitor",
                                     "bool",       "break",         "case",
                                     "catch",      "char",          "char16_t",
                                     "char32_t",   "char8_t",       "class",
                                     "co_await",   "co_return",     "co_yield",
                                     "compl",      "concept",       "const",
                                     "const_cast", "consteval",     "constexpr",
                                     "constinit",  "continue",      "decltype",
                                     "default",    "delete",        "do",
                                     "double",     "dynamic_cast",  "else",
                                     "enum",       "explicit",      "export",
                                     "extern",     "false",         "float",
                                     "for",        "friend",        "goto",
                                     "if",         "inline",        "int",
                                     "int16_t",    "int32_t",       "int64_t",
                                     "int8_t",     "linux",         "long",
                                     "mutable",    "namespace",     "new",
                                     "noexcept",   "not",           "not_eq",
                                     "nullptr",    "operator",      "or",
                                     "or_eq",      "private",       "protected",
                                     "public",     "register",      "reinterpret_cast",
                                     "requires",   "restrict",      "return",
                                     "short",      "signed",        "sizeof",
                                     "static",     "static_assert", "static_cast",
                                     "struct",     "switch",        "template",
                                     "this",       "thread_local",  "throw",
                                     "true",       "try",           "typedef",
                                     "typeid",     "typename",      "uint8_t",
                                     "union",      "unix",          "unsigned",
                                     "using",      "virtual",       "void",
                                     "volatile",   "wchar_t",       "while",
                                     "xor",        "xor_eq"});

std::string_view NameOf(const ArgumentSpec& spec) {
  return {spec.name, strnlen(spec.name, wire::kNameBytes)};
}

std::string Identifier(std::string_view name) {
  std::string result;
  for (const char c : name) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0)
    result.insert(0, "_");
  return result;
}

// Names that are free: a word of the language, or a name that an earlier argument took, gets an
// underscore.
std::vector<StubArgument> NameArguments(const ProblemDescription& description, Form form) {
  std::set<std::string, std::less<>> taken;
  if (form != Form::kPython) taken.insert(kReservedWords.begin(), kReservedWords.end());
  std::vector<StubArgument> arguments;
  for (const ArgumentSpec& spec : description.arguments) {
    if (wire::IsChangedInput(spec)) continue;  // passed once, as the input
    // A C tensor x brings x_size along.
    const auto is_free = [&](const std::string& name) {
      return !taken.contains(name) && (form != Form::kC || !taken.contains(name + "_size"));
    };
    std::string name = Identifier(NameOf(spec));
    while (!is_free(name)) name += '_';
    taken.insert(name);
    if (form == Form::kC) taken.insert(name + "_size");
    arguments.push_back({&spec, std::move(name)});
  }
  return arguments;
}

std::string ShapeText(const ArgumentSpec& spec) {
  return fmt::format("[{}]", fmt::join(spec.shape, spec.shape + spec.rank, ", "));
}

std::string_view ElementType(DType dtype, Form form) {
  const bool on_gpu = form == Form::kCuda || form == Form::kDevice;
  if (dtype == DType::kFloat16 && on_gpu) return "__half";
  if (dtype == DType::kBFloat16 && on_gpu) return "__nv_bfloat16";
  if (form == Form::kCuda && dtype == DType::kFloat8E4M3) return "__nv_fp8_e4m3";
  if (form == Form::kCuda && dtype == DType::kFloat8E5M2) return "__nv_fp8_e5m2";
  if (form == Form::kC && dtype == DType::kFloat16) return "assay_float16";
  if (form == Form::kC && dtype == DType::kBFloat16) return "assay_bfloat16";
  if (form == Form::kC && dtype == DType::kFloat8E4M3) return "assay_float8_e4m3";
  if (form == Form::kC && dtype == DType::kFloat8E5M2) return "assay_float8_e5m2";
  // NVRTC comes without <stdint.h>.
  if (form == Form::kDevice) switch (dtype) {
      case DType::kInt64:
        return "long long";
      case DType::kInt32:
        return "int";
      case DType::kInt16:
        return "short";
      case DType::kInt8:
        return "signed char";
      case DType::kUInt8:
      case DType::kFloat8E4M3:  // its bits
      case DType::kFloat8E5M2:
        return "unsigned char";
      default:
        break;
    }
  return CppTypeName(dtype);
}

std::string_view ScalarType(Kind kind) {
  switch (kind) {
    case Kind::kInt:
      return "int64_t";
    case Kind::kFloat:
      return "double";
    case Kind::kBool:
      return "bool";
    case Kind::kTensor:
      break;
  }
  return {};
}

// Returns true for an output, and for an input that forward changes.
bool IsWritten(const ArgumentSpec& spec) { return spec.role == Role::kOutput || spec.twin != 0; }

// "assay::Tensor<const float, 2> x", or the same in C.
std::string Declaration(const StubArgument& argument, Form form) {
  const ArgumentSpec& spec = *argument.spec;
  const bool c = form == Form::kC;
  if (spec.kind != Kind::kTensor)
    return fmt::format("{}{}{}{}{}", c ? "ASSAY_SCALAR(" : "", ScalarType(spec.kind),
                       c ? ", " : " ", argument.name, c ? ")" : "");
  return fmt::format("{}{}{}, {}{}{}{}", c ? "ASSAY_TENSOR(" : "assay::Tensor<",
                     IsWritten(spec) ? "" : "const ", ElementType(spec.dtype, form), spec.rank,
                     c ? ", " : "> ", argument.name, c ? ")" : "");
}

// Text for a one-line comment: no control characters, and no backslash at the end that would join
// the next line to it.
std::string CommentText(std::string_view text) {
  std::string result;
  for (const char c : text) result += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
  if (result.ends_with('\\')) result.back() = '?';
  return result;
}

// A word as a shell takes it.
std::string ShellWord(std::string_view word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-+=./,:@%").contains(c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The command that judges the stub at the same size. A named size stands for its constants:
// ResolveProblem drops the name as soon as one differs.
std::string JudgeCommand(const ProblemRequest& request, const std::string& file) {
  std::string command = fmt::format("assay judge {} {}{}", ShellWord(request.path), ShellWord(file),
                                    HasGradients(request) ? " --grad" : "");
  if (!request.size.empty()) return command + " --size " + ShellWord(request.size);
  for (const auto& [name, value] : request.set)
    command += fmt::format(" --set {}", ShellWord(name + "=" + value));
  return command;
}

// Says whether weights may be prepared once, if there are any.
void AddRuleOfWeights(const ProblemRequest& request, const std::vector<StubArgument>& arguments,
                      std::vector<std::string>* lines) {
  if (std::none_of(arguments.begin(), arguments.end(), [](const StubArgument& argument) {
        return argument.spec->role == Role::kParameter;
      }))
    return;
  if (request.weights != WeightsKind::kVaried) {
    lines->push_back("Parameters are the same in all calls: they may be prepared once.");
    return;
  }
  lines->push_back(
      "Each call has parameters with values of its own: what is prepared from them in a");
  lines->push_back("constructor or an earlier call is wrong, unless --weights constant allows it.");
}

// The header: problem, sizes, every argument with shape and dtype, the rules in short, the command.
std::vector<std::string> HeaderLines(const ProblemRequest& request,
                                     const std::vector<StubArgument>& arguments,
                                     const HeaderFacts& facts, Form form) {
  std::vector<std::string> lines;
  const bool copies = form == Form::kPython;
  lines.push_back(
      fmt::format("{}{}: a {} candidate that {}.", request.name,
                  request.size.empty() ? "" : ", size " + request.size, FactsOf(form).language,
                  copies ? "computes what the reference does" : "computes nothing yet"));
  if (!request.set.empty()) {
    std::vector<std::string> constants;
    for (const auto& [name, value] : request.set)
      constants.push_back(fmt::format("{} = {}", name, value));
    lines.push_back(fmt::format("Constants set: {}.", fmt::join(constants, ", ")));
  }
  lines.push_back("");
  size_t width = 0;
  for (const StubArgument& argument : arguments) width = std::max(width, argument.name.size());
  for (const StubArgument& argument : arguments) {
    const ArgumentSpec& spec = *argument.spec;
    const char* role = spec.role == Role::kInput       ? "input"
                       : spec.role == Role::kParameter ? "parameter"
                                                       : "output";
    const std::string type = spec.kind == Kind::kTensor
                                 ? fmt::format("{:<8} {}", DTypeName(spec.dtype), ShapeText(spec))
                                 : std::string(spec.kind == Kind::kInt     ? "whole number"
                                               : spec.kind == Kind::kFloat ? "float"
                                                                           : "bool");
    const bool changed = spec.role == Role::kInput && spec.twin != 0;
    lines.push_back(fmt::format("  {:<9}  {:<{}}  {}{}", role, argument.name, width, type,
                                changed ? "  (changed in place)" : ""));
  }
  lines.push_back("");
  if (!facts.layouts.empty()) lines.push_back(facts.layouts + ".");
  const bool changes =
      std::any_of(arguments.begin(), arguments.end(), [](const StubArgument& argument) {
        return argument.spec->role == Role::kInput && argument.spec->twin != 0;
      });
  if (changes) {
    lines.push_back(
        "Inputs that are changed in place are compared, as outputs are. Each call has its own.");
  }
  if (form == Form::kPython) {
    if (HasGradients(request)) {
      lines.push_back("forward takes and returns what that of the reference does. The judge asks");
      lines.push_back(
          "autograd for the gradients: a torch.autograd.Function has a backward of your own.");
    }
    lines.push_back(
        "Parameters are set by name from the reference's state_dict after construction.");
    AddRuleOfWeights(request, arguments, &lines);
  } else {
    lines.push_back(
        fmt::format("Tensors are contiguous, row-major and 64-byte aligned. {} and parameters are "
                    "read-only;",
                    changes ? "Other inputs" : "Inputs"));
    lines.push_back(
        "every element of every output must be written. As it stands it is judged wrong: never "
        "written.");
    AddRuleOfWeights(request, arguments, &lines);
  }
  if (form == Form::kCpp) {
    lines.push_back("");
    lines.push_back("A tensor has x.data(), x.size(axis), x.stride(axis), x.count() and x(i, j).");
    lines.push_back(
        "g++ compiles as C++20 with -O3 -march=native; a line `//! flags -ffast-math` adds flags,");
    lines.push_back(
        "and `//! tune BLOCK = 64 32 128` makes a macro whose other values may be tried.");
  }
  lines.push_back("");
  lines.push_back("  " + JudgeCommand(request, facts.file));
  return lines;
}

std::string Comment(const std::vector<std::string>& lines, std::string_view mark) {
  std::string text;
  for (const std::string& line : lines)
    text +=
        line.empty() ? fmt::format("{}\n", mark) : fmt::format("{} {}\n", mark, CommentText(line));
  return text;
}

// CUDA's headers of the short types among the arguments.
std::string HalfHeaders(const std::vector<StubArgument>& arguments, Form form) {
  const auto uses = [&](DType dtype) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const StubArgument& argument) {
      return argument.spec->kind == Kind::kTensor && argument.spec->dtype == dtype;
    });
  };
  std::string text;
  if (uses(DType::kBFloat16)) text += "#include <cuda_bf16.h>\n";
  if (uses(DType::kFloat16)) text += "#include <cuda_fp16.h>\n";
  if (form == Form::kCuda && (uses(DType::kFloat8E4M3) || uses(DType::kFloat8E5M2)))
    text += "#include <cuda_fp8.h>\n";
  return text;
}

std::string WriteNative(const ProblemRequest& request, const std::vector<StubArgument>& arguments,
                        const HeaderFacts& facts, Form form) {
  std::string text = Comment(HeaderLines(request, arguments, facts, form), "//");
  text += "#include <assay/kernel.h>\n";
  text += form == Form::kCuda ? HalfHeaders(arguments, form) + "\n" : "\n";
  const std::string_view macro = form == Form::kC ? "ASSAY_KERNEL_C(" : "ASSAY_KERNEL(";
  std::vector<std::string> declarations;
  size_t width = 0;
  for (const StubArgument& argument : arguments) {
    const bool last = &argument == &arguments.back() && form != Form::kCuda;
    declarations.push_back(Declaration(argument, form) + (last ? ") {" : ","));
    width = std::max(width, declarations.back().size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string lead = i == 0 ? std::string(macro) : std::string(macro.size(), ' ');
    const ArgumentSpec& spec = *arguments[i].spec;
    text += spec.kind == Kind::kTensor
                ? fmt::format("{}{:<{}}  // {}\n", lead, declarations[i], width, ShapeText(spec))
                : fmt::format("{}{}\n", lead, declarations[i]);
  }
  if (form == Form::kCuda)
    text += fmt::format("{}cudaStream_t stream) {{\n", std::string(macro.size(), ' '));
  text +=
      "  // Write the kernel here, and delete the lines below: they say that nothing is used "
      "yet.\n";
  for (const StubArgument& argument : arguments)
    text += fmt::format("  (void){};\n", argument.name);
  if (form == Form::kCuda) text += "  (void)stream;\n";
  return text + "}\n";
}

// A kernel and its launch line.
std::string WriteDevice(const ProblemRequest& request, const std::vector<StubArgument>& arguments,
                        const HeaderFacts& facts) {
  std::string text = Comment(HeaderLines(request, arguments, facts, Form::kDevice), "//");
  std::vector<std::string> given, taken;
  for (const StubArgument& argument : arguments) {
    const ArgumentSpec& spec = *argument.spec;
    given.push_back(Identifier(NameOf(spec)));
    taken.push_back(spec.kind != Kind::kTensor
                        ? fmt::format("{} {}",
                                      spec.kind == Kind::kInt ? "long long" : ScalarType(spec.kind),
                                      argument.name)
                        : fmt::format("{}{}* {}", IsWritten(spec) ? "" : "const ",
                                      ElementType(spec.dtype, Form::kDevice), argument.name));
  }
  const std::string kernel = Identifier(request.name) + "_kernel";
  text +=
      "//\n// Expressions such as x.size(0) and ceil_div(COLUMNS, 4) may stand in grid=, block= "
      "and args=;\n";
  text += "// `//! constant COLUMNS = x.size(1)` makes a macro of one.\n";
  text +=
      fmt::format("//! launch {} grid=(1) block=(256) args=({})\n", kernel, fmt::join(given, ", "));
  text += HalfHeaders(arguments, Form::kDevice);
  return text +
         fmt::format("extern \"C\" __global__ void {}({}) {{\n  // Write the kernel here.\n}}\n",
                     kernel, fmt::join(taken, ", "));
}

// The problem's own file with `class Model`, wherever it is named, as ModelNew.
std::string WritePython(const ProblemRequest& request, const std::vector<StubArgument>& arguments,
                        const HeaderFacts& facts) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  constexpr std::string_view kName = "Model";
  const std::string source = SourceWithoutGradients(request.source);
  std::string text = Comment(HeaderLines(request, arguments, facts, Form::kPython), "#");
  size_t done = 0;
  for (size_t at = source.find(kName); at != std::string::npos; at = source.find(kName, at + 1)) {
    const size_t end = at + kName.size();
    const bool starts = at == 0 || !in_word(source[at - 1]);
    const bool ends = end == source.size() || !in_word(source[end]) || source[end] == '.';
    if (!starts || !ends) continue;
    text += source.substr(done, end - done) + "New";
    done = end;
  }
  return text + source.substr(done);
}

}  // namespace

std::string_view StubSuffix(std::string_view form) {
  const auto found = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const FormFacts& facts) { return facts.name == form; });
  return found == std::end(kForms) ? std::string_view() : found->suffix;
}

Result<std::string> WriteStub(const ProblemRequest& request, const ProblemDescription& description,
                              std::string_view form_name, std::string_view file) {
  const auto found = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const FormFacts& facts) { return facts.name == form_name; });
  if (found == std::end(kForms))
    return UsageError(
        fmt::format("unknown form '{}': native, c, python, cuda or device", form_name));
  const Form form = found->form;
  for (const ArgumentSpec& spec : description.arguments) {
    const bool known = spec.kind == Kind::kTensor
                           ? wire::ElementBytes(spec.dtype) != 0 && spec.rank <= wire::kRankMax
                           : !ScalarType(spec.kind).empty();
    if (!known)
      return UsageError(
          fmt::format("argument {} has a type that no candidate can take", NameOf(spec)));
  }
  if (description.arguments.empty()) return UsageError("the problem has no inputs and no outputs");
  if (form == Form::kC && description.arguments.size() > kArgumentsMaxInC)
    return UsageError(fmt::format(
        "the problem has {} inputs, parameters and outputs; the C form takes at most {}: "
        "use --form native (C++)",
        description.arguments.size(), kArgumentsMaxInC));
  if (form == Form::kDevice && description.arguments.size() > wire::kLaunchArgumentsMax)
    return UsageError(fmt::format(
        "the problem has {} inputs, parameters and outputs; a launch line takes at most {}: use "
        "--form cuda",
        description.arguments.size(), wire::kLaunchArgumentsMax));
  const std::vector<StubArgument> arguments = NameArguments(description, form);
  const HeaderFacts facts{
      description.layouts,
      file.empty() ? request.name + std::string(FactsOf(form).suffix) : std::string(file)};
  return form == Form::kPython   ? WritePython(request, arguments, facts)
         : form == Form::kDevice ? WriteDevice(request, arguments, facts)
                                 : WriteNative(request, arguments, facts, form);
}

}  // namespace assay
