#include "toolchain/sass.h"

#include <algorithm>
#include <array>
#include <utility>

#include "toolchain/lines.h"

namespace assay {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

// Instructions by their name up to the first dot.
constexpr auto kKinds = std::to_array<Entry>({
    {"BMMA", "matrix"},         {"DMMA", "matrix"},          {"HMMA", "matrix"},
    {"IMMA", "matrix"},         {"OMMA", "matrix"},          {"QMMA", "matrix"},
    {"BGMMA", "matrix"},        {"HGMMA", "matrix"},         {"IGMMA", "matrix"},
    {"QGMMA", "matrix"},        {"UTCHMMA", "matrix"},       {"UTCIMMA", "matrix"},
    {"UTCOMMA", "matrix"},      {"UTCQMMA", "matrix"},       {"DADD", "float64"},
    {"DFMA", "float64"},        {"DMUL", "float64"},         {"DSETP", "float64"},
    {"FADD", "float32"},        {"FADD2", "float32"},        {"FADD32I", "float32"},
    {"FCHK", "float32"},        {"FFMA", "float32"},         {"FFMA2", "float32"},
    {"FFMA32I", "float32"},     {"FMNMX", "float32"},        {"FMNMX3", "float32"},
    {"FMUL", "float32"},        {"FMUL2", "float32"},        {"FMUL32I", "float32"},
    {"FSEL", "float32"},        {"FSET", "float32"},         {"FSETP", "float32"},
    {"FSWZADD", "float32"},     {"HADD2", "float16"},        {"HADD2_32I", "float16"},
    {"HFMA2", "float16"},       {"HFMA2_32I", "float16"},    {"HMNMX2", "float16"},
    {"HMUL2", "float16"},       {"HMUL2_32I", "float16"},    {"HSET2", "float16"},
    {"HSETP2", "float16"},      {"MUFU", "special"},         {"F2F", "conversion"},
    {"F2FP", "conversion"},     {"F2I", "conversion"},       {"F2IP", "conversion"},
    {"FRND", "conversion"},     {"I2F", "conversion"},       {"I2FP", "conversion"},
    {"I2I", "conversion"},      {"I2IP", "conversion"},      {"IABS", "integer"},
    {"IADD", "integer"},        {"IADD3", "integer"},        {"IDP", "integer"},
    {"IMAD", "integer"},        {"IMNMX", "integer"},        {"IMUL", "integer"},
    {"ISETP", "integer"},       {"LEA", "integer"},          {"LOP3", "integer"},
    {"PRMT", "integer"},        {"SHF", "integer"},          {"SHL", "integer"},
    {"SHR", "integer"},         {"VIADD", "integer"},        {"VIMNMX", "integer"},
    {"UIADD3", "integer"},      {"UIMAD", "integer"},        {"UISETP", "integer"},
    {"ULEA", "integer"},        {"ULOP3", "integer"},        {"USHF", "integer"},
    {"LD", "global_load"},      {"LDG", "global_load"},      {"ST", "global_store"},
    {"STG", "global_store"},    {"LDS", "shared"},           {"LDSM", "shared"},
    {"STS", "shared"},          {"STSM", "shared"},          {"LDL", "local"},
    {"STL", "local"},           {"LDGSTS", "async_copy"},    {"UBLKCP", "async_copy"},
    {"UBLKPF", "async_copy"},   {"UBLKRED", "async_copy"},   {"UTMALDG", "async_copy"},
    {"UTMAPF", "async_copy"},   {"UTMAREDG", "async_copy"},  {"UTMASTG", "async_copy"},
    {"ATOM", "atomic"},         {"ATOMG", "atomic"},         {"ATOMS", "atomic"},
    {"RED", "atomic"},          {"REDG", "atomic"},          {"UATOMG", "atomic"},
    {"BAR", "barrier"},         {"DEPBAR", "barrier"},       {"ERRBAR", "barrier"},
    {"LDGDEPBAR", "barrier"},   {"MEMBAR", "barrier"},       {"SYNCS", "barrier"},
    {"UCGABAR_ARV", "barrier"}, {"UCGABAR_WAIT", "barrier"}, {"WARPSYNC", "barrier"},
    {"BRA", "branch"},          {"BRX", "branch"},           {"CALL", "branch"},
    {"EXIT", "branch"},         {"JMP", "branch"},           {"RET", "branch"},
});

// No instruction at all: what fills a kernel's end.
constexpr std::string_view kNothing = "NOP";
constexpr std::string_view kSection = ".text.";

// Of a load: .128, .64, .U16... of a thread; 4 where nothing is said.
int LoadBytes(std::string_view instruction) {
  for (const auto& [mark, bytes] : {std::pair<std::string_view, int>{".ENL2.256", 32},
                                    {".256", 32},
                                    {".128", 16},
                                    {".64", 8},
                                    {".U16", 2},
                                    {".S16", 2},
                                    {".U8", 1},
                                    {".S8", 1}})
    if (instruction.find(mark) != std::string_view::npos) return bytes;
  return 4;
}

}  // namespace

std::string_view KernelOnLine(std::string_view line) {
  line = TrimSpace(line);
  if (!line.starts_with(".section")) return {};
  const size_t begin = line.find(kSection);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = line.substr(begin + kSection.size());
  return rest.substr(0, rest.find_first_of(", \t"));
}

std::optional<ListedInstruction> InstructionOnLine(std::string_view line) {
  line = TrimSpace(line);
  if (!line.starts_with("/*")) return std::nullopt;
  const size_t end = line.find("*/");
  if (end == std::string_view::npos) return std::nullopt;
  ListedInstruction instruction;
  instruction.address = TrimSpace(line.substr(2, end - 2));
  std::string_view rest = TrimSpace(line.substr(end + 2));
  rest = TrimSpace(rest.substr(0, rest.find(';')));
  if (rest.starts_with('{')) rest = TrimSpace(rest.substr(1));
  if (rest.starts_with('@')) {
    instruction.guard = rest.substr(0, rest.find(' '));
    rest = TrimSpace(rest.substr(instruction.guard.size()));
  }
  instruction.name = rest.substr(0, rest.find(' '));
  instruction.operands = TrimSpace(rest.substr(instruction.name.size()));
  if (instruction.name.empty() || instruction.name.starts_with(kNothing)) return std::nullopt;
  return instruction;
}

std::string_view InstructionKind(std::string_view instruction) {
  const std::string_view name = instruction.substr(0, instruction.find('.'));
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const Entry& entry) { return entry.first == name; });
  return found == kKinds.end() ? "other" : found->second;
}

std::map<std::string, InstructionMix> ParseListing(std::string_view listing) {
  std::map<std::string, InstructionMix> mixes;
  InstructionMix* mix = nullptr;
  while (!listing.empty()) {
    const std::string_view line = TrimSpace(TakeLine(listing));
    if (line.starts_with(".section")) {
      const std::string_view kernel = KernelOnLine(line);
      mix = kernel.empty() ? nullptr : &mixes[std::string(kernel)];
      continue;
    }
    const auto instruction = InstructionOnLine(line);
    if (mix == nullptr || !instruction) continue;
    const std::string_view kind = InstructionKind(instruction->name);
    ++mix->counts[std::string(kind)];
    if (kind == "global_load")
      mix->widest_load_bytes = std::max(mix->widest_load_bytes, LoadBytes(instruction->name));
  }
  return mixes;
}

}  // namespace assay
