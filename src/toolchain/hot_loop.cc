#include "toolchain/hot_loop.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "toolchain/lines.h"

namespace assay {
namespace {

constexpr size_t kBlocksMax = 4000;  // of a kernel
constexpr size_t kNone = SIZE_MAX;

using Entry = std::pair<std::string_view, std::string_view>;
constexpr auto kMarks = std::to_array<Entry>({
    {"matrix", "multiply"},
    {"float64", "arithmetic"},
    {"float32", "arithmetic"},
    {"float16", "arithmetic"},
    {"special", "special"},
    {"async_copy", "copy"},
    {"global_load", "load"},
    {"global_store", "store"},
    {"atomic", "atomic"},
    {"shared", "shared"},
    {"local", "spill"},
});
constexpr auto kWaits =
    std::to_array<std::string_view>({"DEPBAR", "WARPGROUP.DEPBAR", "BAR.SYNC", "BAR.RED",
                                     "WARPSYNC", "UCGABAR_WAIT", "SYNCS.PHASECHK"});

// One kernel's part of a listing.
struct Code {
  std::string kernel;
  std::vector<ListedInstruction> instructions;
  std::map<std::string_view, size_t> labels;  // to the next instruction
};

std::vector<Code> CodeOf(std::string_view listing) {
  std::vector<Code> all;
  bool inside = false;
  while (!listing.empty()) {
    const std::string_view line = TrimSpace(TakeLine(listing));
    if (line.starts_with(".section")) {
      const std::string_view kernel = KernelOnLine(line);
      inside = !kernel.empty();
      if (inside) all.push_back({std::string(kernel), {}, {}});
    } else if (inside && line.ends_with(':')) {
      all.back().labels[line.substr(0, line.size() - 1)] = all.back().instructions.size();
    } else if (const auto instruction = inside ? InstructionOnLine(line) : std::nullopt) {
      all.back().instructions.push_back(*instruction);
    }
  }
  return all;
}

bool IsNamed(const ListedInstruction& instruction, std::string_view name) {
  return instruction.name.substr(0, instruction.name.find('.')) == name;
}

// The label in "P0, `(.L_x_3)"; empty: none.
std::string_view LabelIn(std::string_view operands) {
  const size_t begin = operands.find("`(");
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = operands.substr(begin + 2);
  return rest.substr(0, rest.find(')'));
}

// The graph of a kernel's basic blocks.
class Blocks {
 public:
  explicit Blocks(const Code& code) : code_(code) {
    std::set<size_t> begins{0};
    for (const auto& [label, at] : code.labels) begins.insert(at);
    for (size_t i = 0; i < code.instructions.size(); ++i)
      if (EndsBlock(code.instructions[i])) begins.insert(i + 1);
    begins.erase(code.instructions.size());
    begins_.assign(begins.begin(), begins.end());
    successors_.resize(begins_.size());
    predecessors_.resize(begins_.size());
    for (size_t block = 0; block < begins_.size(); ++block) Link(block);
  }

  size_t count() const { return begins_.size(); }
  size_t Begin(size_t block) const { return begins_[block]; }
  size_t End(size_t block) const {
    return block + 1 < begins_.size() ? begins_[block + 1] : code_.instructions.size();
  }
  const std::vector<size_t>& successors(size_t block) const { return successors_[block]; }
  const std::vector<size_t>& predecessors(size_t block) const { return predecessors_[block]; }

 private:
  static bool EndsBlock(const ListedInstruction& instruction) {
    for (const std::string_view name : {"BRA", "BRX", "JMP", "EXIT", "RET", "BSYNC"})
      if (IsNamed(instruction, name)) return true;
    return false;
  }

  size_t BlockAt(size_t instruction) const {
    const auto next = std::upper_bound(begins_.begin(), begins_.end(), instruction);
    return static_cast<size_t>(next - begins_.begin()) - 1;
  }

  void Add(size_t from, size_t to_instruction) {
    if (to_instruction >= code_.instructions.size()) return;
    const size_t to = BlockAt(to_instruction);
    successors_[from].push_back(to);
    predecessors_[to].push_back(from);
  }

  void AddLabel(size_t from, std::string_view operands) {
    const auto label = code_.labels.find(LabelIn(operands));
    if (label != code_.labels.end()) Add(from, label->second);
  }

  void Link(size_t block) {
    const size_t last = End(block) - 1;
    const ListedInstruction& instruction = code_.instructions[last];
    bool falls_through = true;
    if (IsNamed(instruction, "BRA")) {
      AddLabel(block, instruction.operands);
      // "BRA P0, `(...)" and "BRA.DIV UR4, `(...)" are conditional without a guard.
      falls_through = !instruction.guard.empty() || !instruction.operands.starts_with('`');
    } else if (IsNamed(instruction, "BSYNC")) {
      falls_through = !AddMeeting(block, last);
    } else if (EndsBlock(instruction)) {
      falls_through = !instruction.guard.empty();
    }
    if (falls_through) Add(block, last + 1);
  }

  // Threads that parted meet where the last BSSY of this barrier says.
  bool AddMeeting(size_t block, size_t at) {
    const std::string_view barrier = code_.instructions[at].operands;
    for (size_t i = at; i-- > 0;) {
      const ListedInstruction& other = code_.instructions[i];
      if (!IsNamed(other, "BSSY") || !other.operands.starts_with(barrier)) continue;
      AddLabel(block, other.operands);
      return true;
    }
    return false;
  }

  const Code& code_;
  std::vector<size_t> begins_;
  std::vector<std::vector<size_t>> successors_, predecessors_;
};

// Each block's number in reverse postorder from the first one; kNone: never reached.
struct Order {
  std::vector<size_t> number, blocks;
};

Order OrderOf(const Blocks& blocks) {
  Order order;
  order.number.assign(blocks.count(), kNone);
  std::vector<bool> seen(blocks.count());
  std::vector<std::pair<size_t, size_t>> path{{0, 0}};  // a block, and its next successor
  seen[0] = true;
  while (!path.empty()) {
    auto& [block, next] = path.back();
    if (next == blocks.successors(block).size()) {
      order.blocks.push_back(block);
      path.pop_back();
      continue;
    }
    const size_t successor = blocks.successors(block)[next++];
    if (seen[successor]) continue;
    seen[successor] = true;
    path.emplace_back(successor, 0);
  }
  std::reverse(order.blocks.begin(), order.blocks.end());
  for (size_t i = 0; i < order.blocks.size(); ++i) order.number[order.blocks[i]] = i;
  return order;
}

// Immediate dominators, as numbers of `order`. Source: Cooper, Harvey and Kennedy, "A Simple, Fast
// Dominance Algorithm", 2001.
std::vector<size_t> DominatorsOf(const Blocks& blocks, const Order& order) {
  std::vector<size_t> dominator(order.blocks.size(), kNone);
  dominator[0] = 0;
  const auto meet = [&](size_t a, size_t b) {
    while (a != b) {
      while (a > b) a = dominator[a];
      while (b > a) b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 1; i < order.blocks.size(); ++i) {
      size_t common = kNone;
      for (const size_t block : blocks.predecessors(order.blocks[i])) {
        const size_t from = order.number[block];
        if (from == kNone || dominator[from] == kNone) continue;
        common = common == kNone ? from : meet(common, from);
      }
      if (common == dominator[i]) continue;
      dominator[i] = common;
      changed = true;
    }
  }
  return dominator;
}

// All natural loops; those with one head are one loop.
std::vector<std::set<size_t>> LoopsOf(const Blocks& blocks) {
  const Order order = OrderOf(blocks);
  const std::vector<size_t> dominator = DominatorsOf(blocks, order);
  std::map<size_t, std::set<size_t>> loops;  // by the head
  for (const size_t tail : order.blocks)
    for (const size_t head : blocks.successors(tail)) {
      size_t above = order.number[tail];
      while (above > order.number[head]) above = dominator[above];
      if (above != order.number[head]) continue;
      std::set<size_t>& loop = loops[head];
      loop.insert(head);
      for (std::vector<size_t> left{tail}; !left.empty();) {
        const size_t block = left.back();
        left.pop_back();
        if (order.number[block] == kNone || !loop.insert(block).second) continue;
        left.insert(left.end(), blocks.predecessors(block).begin(),
                    blocks.predecessors(block).end());
      }
    }
  std::vector<std::set<size_t>> all;
  for (auto& [head, loop] : loops) all.push_back(std::move(loop));
  return all;
}

// Which of the marks make a loop hot, the weightiest first.
constexpr auto kHeat = std::to_array<std::array<std::string_view, 2>>(
    {{"multiply", "multiply"}, {"arithmetic", "arithmetic"}, {"load", "store"}});

// The loop that itself has the most lines of these marks; where several do, the shortest.
const std::set<size_t>* Hottest(const std::vector<std::set<size_t>>& loops, const Blocks& blocks,
                                const Code& code, const std::array<std::string_view, 2>& marks) {
  std::vector<size_t> own(loops.size());
  for (size_t block = 0; block < blocks.count(); ++block) {
    size_t innermost = kNone;
    for (size_t i = 0; i < loops.size(); ++i)
      if (loops[i].contains(block) &&
          (innermost == kNone || loops[i].size() < loops[innermost].size()))
        innermost = i;
    if (innermost == kNone) continue;
    for (size_t i = blocks.Begin(block); i < blocks.End(block); ++i)
      if (std::find(marks.begin(), marks.end(), MarkOf(code.instructions[i].name)) != marks.end())
        ++own[innermost];
  }
  const std::set<size_t>* hottest = nullptr;
  size_t most = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    const bool shorter = hottest != nullptr && loops[i].size() < hottest->size();
    if (own[i] == 0 || own[i] < most || (own[i] == most && !shorter)) continue;
    most = own[i];
    hottest = &loops[i];
  }
  return hottest;
}

void CountMarks(HotLoop* loop) {
  std::map<std::string_view, int64_t> counts;
  for (const ListedInstruction& line : loop->lines)
    if (const std::string_view mark = MarkOf(line.name); !mark.empty()) ++counts[mark];
  loop->marks.assign(counts.begin(), counts.end());
  std::stable_sort(loop->marks.begin(), loop->marks.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

HotLoop HotLoopOf(const Code& code, bool whole) {
  HotLoop hot{code.kernel, code.instructions.size(), {}, code.instructions, {}};
  const Blocks blocks(code);
  if (!whole && blocks.count() <= kBlocksMax) {
    const std::vector<std::set<size_t>> loops = LoopsOf(blocks);
    for (const auto& marks : kHeat) {
      const std::set<size_t>* loop = Hottest(loops, blocks, code, marks);
      if (loop == nullptr) continue;
      hot.chosen_by = marks.front();
      hot.lines.clear();
      for (const size_t block : *loop)
        hot.lines.insert(hot.lines.end(),
                         code.instructions.begin() + static_cast<ptrdiff_t>(blocks.Begin(block)),
                         code.instructions.begin() + static_cast<ptrdiff_t>(blocks.End(block)));
      break;
    }
  }
  CountMarks(&hot);
  return hot;
}

std::vector<HotLoop> AllOf(std::string_view listing, bool whole) {
  std::vector<HotLoop> loops;
  for (const Code& code : CodeOf(listing))
    if (!code.instructions.empty()) loops.push_back(HotLoopOf(code, whole));
  return loops;
}

}  // namespace

std::string_view MarkOf(std::string_view instruction) {
  const std::string_view kind = InstructionKind(instruction);
  // WARPGROUP orders asynchronous products, and is of no kind that is counted.
  if (kind == "barrier" || instruction.starts_with("WARPGROUP.")) {
    const bool waits = std::any_of(kWaits.begin(), kWaits.end(), [&](std::string_view wait) {
      return instruction.starts_with(wait);
    });
    return waits ? "wait" : "signal";
  }
  const auto found = std::find_if(kMarks.begin(), kMarks.end(),
                                  [&](const Entry& entry) { return entry.first == kind; });
  return found == kMarks.end() ? std::string_view() : found->second;
}

std::vector<HotLoop> FindHotLoops(std::string_view listing) { return AllOf(listing, false); }

std::vector<HotLoop> WholeKernels(std::string_view listing) { return AllOf(listing, true); }

}  // namespace assay
