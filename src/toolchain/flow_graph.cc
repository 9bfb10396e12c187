#include "toolchain/flow_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

namespace assay {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

struct Block {
  size_t begin = 0, end = 0;  // instructions, the end not in it
  std::vector<size_t> next, before;
};

class FlowGraph {
 public:
  explicit FlowGraph(const std::vector<FlowStep>& steps) {
    Divide(steps);
    Order();
    FindDominators();
  }

  // The blocks of each natural loop, by its head.
  std::map<size_t, std::set<size_t>> Loops() const;
  // The instructions of a loop's blocks, without those behind `last`.
  FlowLoop Instructions(const std::set<size_t>& blocks, size_t last) const;
  // The last of the head and of the blocks that jump to it.
  size_t LastOf(size_t head, const std::set<size_t>& blocks) const;

 private:
  void Divide(const std::vector<FlowStep>& steps);
  void Order();
  void FindDominators();
  size_t CommonDominator(size_t one, size_t other) const;
  bool Dominates(size_t head, size_t block) const;

  std::vector<Block> blocks_;
  std::vector<size_t> order_;      // blocks that can be reached, each before most that follow it
  std::vector<size_t> number_;     // of each block in `order_`; kNone: it cannot be reached
  std::vector<size_t> dominator_;  // of each block: the nearest one above it
};

void FlowGraph::Divide(const std::vector<FlowStep>& steps) {
  std::set<size_t> begins{0};
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].target) {
      ASSAY_CHECK(*steps[i].target < steps.size());
      begins.insert(*steps[i].target);
    }
    if ((steps[i].target || !steps[i].falls_through) && i + 1 < steps.size()) begins.insert(i + 1);
  }
  std::vector<size_t> block_at(steps.size());
  for (auto begin = begins.begin(); begin != begins.end(); ++begin) {
    const size_t end = std::next(begin) == begins.end() ? steps.size() : *std::next(begin);
    std::fill(block_at.begin() + static_cast<std::ptrdiff_t>(*begin),
              block_at.begin() + static_cast<std::ptrdiff_t>(end), blocks_.size());
    blocks_.push_back({*begin, end, {}, {}});
  }
  for (Block& block : blocks_) {
    const FlowStep& last = steps[block.end - 1];
    if (last.falls_through && block.end < steps.size()) block.next.push_back(block_at[block.end]);
    if (last.target) block.next.push_back(block_at[*last.target]);
  }
  for (size_t i = 0; i < blocks_.size(); ++i)
    for (const size_t next : blocks_[i].next) blocks_[next].before.push_back(i);
}

// In reverse postorder.
void FlowGraph::Order() {
  number_.assign(blocks_.size(), kNone);
  std::vector<bool> seen(blocks_.size());
  std::vector<std::pair<size_t, size_t>> path{{0, 0}};  // a block, and its edges that were taken
  seen[0] = true;
  while (!path.empty()) {
    auto& [block, taken] = path.back();
    if (taken == blocks_[block].next.size()) {
      order_.push_back(block);
      path.pop_back();
      continue;
    }
    const size_t next = blocks_[block].next[taken++];
    if (seen[next]) continue;
    seen[next] = true;
    path.emplace_back(next, 0);
  }
  std::reverse(order_.begin(), order_.end());
  for (size_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i;
}

size_t FlowGraph::CommonDominator(size_t one, size_t other) const {
  while (one != other) {
    while (number_[one] > number_[other]) one = dominator_[one];
    while (number_[other] > number_[one]) other = dominator_[other];
  }
  return one;
}

// By Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001.
void FlowGraph::FindDominators() {
  dominator_.assign(blocks_.size(), kNone);
  dominator_[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const size_t block : order_) {
      if (block == 0) continue;
      size_t found = kNone;
      for (const size_t before : blocks_[block].before) {
        if (dominator_[before] == kNone) continue;
        found = found == kNone ? before : CommonDominator(found, before);
      }
      if (found == dominator_[block]) continue;
      dominator_[block] = found;
      changed = true;
    }
  }
}

bool FlowGraph::Dominates(size_t head, size_t block) const {
  while (number_[block] > number_[head]) block = dominator_[block];
  return block == head;
}

std::map<size_t, std::set<size_t>> FlowGraph::Loops() const {
  std::map<size_t, std::set<size_t>> loops;
  for (const size_t from : order_) {
    for (const size_t head : blocks_[from].next) {
      if (!Dominates(head, from)) continue;
      std::set<size_t>& loop = loops[head];
      loop.insert(head);
      std::vector<size_t> open{from};
      while (!open.empty()) {
        const size_t block = open.back();
        open.pop_back();
        if (number_[block] == kNone || !loop.insert(block).second) continue;
        open.insert(open.end(), blocks_[block].before.begin(), blocks_[block].before.end());
      }
    }
  }
  return loops;
}

size_t FlowGraph::LastOf(size_t head, const std::set<size_t>& blocks) const {
  size_t last = head;
  for (const size_t before : blocks_[head].before)
    // A rare block may be an end of its own.
    if (blocks.contains(before) && blocks_[before].next.size() > 1) last = std::max(last, before);
  if (last > head) return last;
  for (const size_t before : blocks_[head].before)
    if (blocks.contains(before)) last = std::max(last, before);
  return last;
}

FlowLoop FlowGraph::Instructions(const std::set<size_t>& blocks, size_t last) const {
  FlowLoop found;
  for (const size_t block : blocks)
    for (size_t i = blocks_[block].begin; block <= last && i < blocks_[block].end; ++i)
      found.push_back(i);
  return found;
}

}  // namespace

std::vector<FlowLoop> InnermostLoops(const std::vector<FlowStep>& steps) {
  if (steps.empty()) return {};
  const FlowGraph graph(steps);
  const auto loops = graph.Loops();
  std::vector<FlowLoop> innermost;
  for (const auto& [head, blocks] : loops) {
    const bool holds_one = std::any_of(loops.begin(), loops.end(), [&](const auto& other) {
      return other.first != head && blocks.contains(other.first);
    });
    if (!holds_one) innermost.push_back(graph.Instructions(blocks, graph.LastOf(head, blocks)));
  }
  return innermost;
}

}  // namespace assay
