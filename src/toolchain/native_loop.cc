#include "toolchain/native_loop.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "toolchain/flow_graph.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

struct Instruction {
  uint64_t address = 0;
  std::string_view name;      // "vaddps"
  std::string_view operands;  // "zmm0,zmm1,ZMMWORD PTR [rax]"
  int line = 0;               // of the candidate's source; 0: another file's
};

template <typename Number>
bool Take(std::string_view text, int base, Number* value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return read.ec == std::errc() && read.ptr != text.data();
}

// "/candidate/kernel.cpp:18 (discriminator 3)": the line, 0 in another file; nullopt: no such text.
std::optional<int> SourceLine(std::string_view text, std::string_view source) {
  if (!text.starts_with('/')) return std::nullopt;
  const size_t colon = text.rfind(':');
  int line = 0;
  if (colon == std::string_view::npos || !Take(text.substr(colon + 1), 10, &line))
    return std::nullopt;
  return text.substr(0, colon) == source ? line : 0;
}

// "    1208: vmaxss xmm1,xmm0,xmm1", with a tab after the address.
std::optional<Instruction> InstructionAt(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !text.starts_with(' ')) return std::nullopt;
  Instruction found;
  if (!Take(TrimSpace(text.substr(0, colon)), 16, &found.address)) return std::nullopt;
  text = TrimSpace(text.substr(colon + 1));
  for (std::string_view prefix : {"rep ", "repz ", "lock ", "notrack ", "bnd "})
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  const size_t end = std::min(text.find(' '), text.size());
  found.name = text.substr(0, end);
  found.operands = TrimSpace(text.substr(end));
  return found;
}

bool IsJump(const Instruction& instruction) { return instruction.name.starts_with('j'); }

// The function that a call names: "expf" of "1030 <expf@plt>"; empty: called by an address.
std::string Callee(const Instruction& instruction) {
  const size_t begin = instruction.operands.find('<');
  if (!instruction.name.starts_with("call") || begin == std::string_view::npos) return {};
  std::string_view name = instruction.operands.substr(begin + 1);
  name = name.substr(0, name.rfind('>'));
  return std::string(name.substr(0, name.find("@plt")));
}

// The operation of arithmetic on floating point, without the prefix of vectors and the suffix of
// the operands: "add" of "vaddps"; empty: it is none.
std::string_view Operation(std::string_view name) {
  constexpr std::array<std::string_view, 6> kSuffixes{"ps", "pd", "ph", "ss", "sd", "sh"};
  constexpr std::array<std::string_view, 11> kOperations{
      "add", "sub", "mul", "div", "sqrt", "max", "min", "rsqrt", "rcp", "scalef", "rndscale"};
  if (name.size() < 5) return {};
  if (std::find(kSuffixes.begin(), kSuffixes.end(), name.substr(name.size() - 2)) ==
      kSuffixes.end())
    return {};
  name.remove_suffix(2);
  if (name.starts_with('v')) name.remove_prefix(1);
  for (std::string_view fused : {"fmadd", "fmsub", "fnmadd", "fnmsub"})
    if (name.starts_with(fused)) return "multiply-add";
  for (std::string_view operation : kOperations)
    if (name == operation || (name.starts_with(operation) && name.ends_with("14")))
      return operation;
  return {};
}

// Whether it does arithmetic on vectors of integers: "vpaddd", "pmaddwd", "vpdpbusd".
bool IsOnIntegers(const Instruction& instruction) {
  std::string_view name = instruction.name;
  if (name.starts_with('v')) name.remove_prefix(1);
  for (std::string_view operation :
       {"padd", "psub", "pmul", "pmadd", "pmax", "pmin", "pabs", "pavg", "psad", "pdp"})
    if (name.starts_with(operation))
      return instruction.operands.find("mm") != std::string_view::npos;
  return false;
}

int BitsOf(std::string_view operands) {
  if (operands.find("zmm") != std::string_view::npos) return 512;
  if (operands.find("ymm") != std::string_view::npos) return 256;
  return operands.find("xmm") != std::string_view::npos ? 128 : 0;
}

bool IsOnStack(const Instruction& instruction) {
  if (instruction.name == "lea" || instruction.name.starts_with("prefetch")) return false;
  const std::string_view operands = instruction.operands;
  for (std::string_view base : {"[rsp", "[rbp-", "[rbp+"})
    if (operands.find(base) != std::string_view::npos &&
        operands.find('*') == std::string_view::npos)
      return true;
  return false;
}

// Whether a call does not come back: the way to an exception or to the end of the process.
bool NeverReturns(std::string_view callee) {
  for (std::string_view name : {"__throw", "__cxa_throw", "__cxa_rethrow", "_Unwind_Resume",
                                "__stack_chk_fail", "__assert_fail", "terminate", "abort", "exit"})
    if (callee.contains(name)) return true;
  return false;
}

// Whether a call finds thread-local memory.
bool IsThreadLocal(std::string_view callee) {
  return callee.contains("__tls_get_addr") || callee.contains("TLS wrapper") ||
         callee.contains("TLS init");
}

// Whether a call manages memory or copies it, which marks no loop of arithmetic.
bool IsHousekeeping(std::string_view callee) {
  for (std::string_view name :
       {"operator new", "operator delete", "malloc", "calloc", "realloc", "free", "aligned_alloc",
        "posix_memalign", "memcpy", "memmove", "memset", "__cxa_", "_Unwind_"})
    if (callee.contains(name)) return true;
  return false;
}

// `code`: the instructions of one function in order.
std::vector<FlowStep> FlowOf(const std::vector<Instruction>& code) {
  std::vector<FlowStep> steps(code.size());
  for (size_t i = 0; i < code.size(); ++i) {
    const std::string_view name = code[i].name;
    steps[i].falls_through = name != "jmp" && !name.starts_with("ret") && name != "ud2" &&
                             name != "hlt" && !NeverReturns(Callee(code[i]));
    uint64_t address = 0;
    if (!IsJump(code[i]) || !Take(code[i].operands, 16, &address)) continue;
    const auto found = std::ranges::lower_bound(code, address, {}, &Instruction::address);
    if (found != code.end() && found->address == address)
      steps[i].target = static_cast<size_t>(found - code.begin());
  }
  return steps;
}

NativeLoop Describe(const std::vector<Instruction>& code, const FlowLoop& loop) {
  NativeLoop described;
  std::set<std::string> calls;
  for (const size_t i : loop) {
    const Instruction& instruction = code[i];
    ++described.instructions;
    if (instruction.line > 0) {
      described.last_line = std::max(described.last_line, instruction.line);
      if (described.first_line == 0 || instruction.line < described.first_line)
        described.first_line = instruction.line;
    }
    if (IsOnStack(instruction)) ++described.spills;
    if (instruction.name.starts_with("vgather")) ++described.gathers;
    if (auto callee = Callee(instruction);
        !callee.empty() && !NeverReturns(callee) && !IsThreadLocal(callee))
      calls.insert(std::move(callee));
    const std::string_view operation = Operation(instruction.name);
    if (operation.empty() && !IsOnIntegers(instruction)) continue;
    if (operation == "div" || operation == "sqrt") ++described.divisions;
    if (!operation.empty() && instruction.name[instruction.name.size() - 2] == 's') {
      ++described.on_scalars;
    } else {
      ++described.on_vectors;
      described.vector_bits = std::max(described.vector_bits, BitsOf(instruction.operands));
    }
  }
  described.calls.assign(calls.begin(), calls.end());
  return described;
}

int64_t WorkOf(const NativeLoop& loop) {
  constexpr int64_t kVector = 2, kDivision = 5, kCall = 20;
  return loop.on_scalars + kVector * loop.on_vectors + kDivision * loop.divisions +
         kCall * std::ranges::count_if(
                     loop.calls, [](const std::string& callee) { return !IsHousekeeping(callee); });
}

void TakeLoops(const std::vector<Instruction>& code, std::vector<NativeLoop>* loops) {
  if (code.empty()) return;
  for (const FlowLoop& loop : InnermostLoops(FlowOf(code))) {
    NativeLoop described = Describe(code, loop);
    // Loops of start-up code have no line of the candidate's.
    if (described.first_line > 0 && WorkOf(described) > 0) loops->push_back(std::move(described));
  }
}

// A loop on scalars that shares lines with one on vectors does that one's last elements.
bool IsRemainder(const NativeLoop& loop, const std::vector<NativeLoop>& loops) {
  const bool calls = !std::ranges::all_of(loop.calls, IsHousekeeping);
  if (loop.on_vectors >= loop.on_scalars || calls) return false;
  return std::any_of(loops.begin(), loops.end(), [&](const NativeLoop& other) {
    return other.on_vectors > other.on_scalars && other.first_line <= loop.last_line &&
           loop.first_line <= other.last_line;
  });
}

std::optional<NativeLoop> Best(const std::vector<NativeLoop>& loops) {
  const NativeLoop* best = nullptr;
  for (const NativeLoop& loop : loops)
    if (!IsRemainder(loop, loops) && (best == nullptr || WorkOf(loop) > WorkOf(*best)))
      best = &loop;
  return best != nullptr ? std::optional(*best) : std::nullopt;
}

bool StartsThreads(const Instruction& instruction) {
  const std::string callee = Callee(instruction);
  for (std::string_view name :
       {"GOMP_parallel", "__kmpc_fork", "pthread_create", "_M_start_thread"})
    if (callee.contains(name)) return true;
  return false;
}

}  // namespace

NativeCode ReadNativeListing(std::string_view listing, std::string_view source) {
  NativeCode read;
  std::vector<Instruction> function;
  std::vector<NativeLoop> loops;
  int line = 0;
  while (!listing.empty()) {
    const std::string_view text = TakeLine(listing);
    if (text.ends_with(">:")) {
      TakeLoops(function, &loops);
      function.clear();
      line = 0;
    } else if (auto instruction = InstructionAt(text)) {
      instruction->line = line;
      if (StartsThreads(*instruction)) read.starts_threads = true;
      function.push_back(*instruction);
    } else if (const auto at = SourceLine(text, source)) {
      line = *at;
    }
  }
  TakeLoops(function, &loops);
  read.loop = Best(loops);
  return read;
}

}  // namespace assay
