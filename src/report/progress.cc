#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>

#include "report/text.h"

namespace assay {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int kBarWidth = 24;
constexpr int64_t kNever = INT64_MIN / 2;

std::string StageName(const std::string& stage) {
  return stage.substr(0, stage.find_first_of("0123456789"));
}

}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  std::fill(std::begin(draws_ns_), std::end(draws_ns_), kNever);
}

Progress::~Progress() { Clear(); }

void Progress::Update(std::string stage, double fraction) {
  const std::scoped_lock lock(mutex_);
  const std::string name = StageName(stage);
  if (!options_.terminal.interactive) {
    if (options_.verbose && name != stage_name_)
      Write(Printable(stage, options_.terminal.unicode) + "\n");
    stage_name_ = name;
    return;
  }
  const int64_t now_ns = options_.now_ns();
  if (!MayDraw(name, now_ns)) return;
  draws_ns_[next_draw_] = now_ns;
  next_draw_ = (next_draw_ + 1) % kDrawsPerSecond;
  stage_name_ = name;
  Draw(stage, fraction);
}

void Progress::Clear() {
  const std::scoped_lock lock(mutex_);
  if (!visible_) return;
  visible_ = false;
  Write("\r\x1b[K");
}

bool Progress::MayDraw(const std::string& name, int64_t now_ns) {
  if (now_ns - draws_ns_[next_draw_] < kSecondNs) return false;  // ten draws within a second
  const int last = (next_draw_ + kDrawsPerSecond - 1) % kDrawsPerSecond;
  return name != stage_name_ || !visible_ ||
         now_ns - draws_ns_[last] >= kSecondNs / kDrawsPerSecond;
}

void Progress::Draw(const std::string& stage, double fraction) {
  const Terminal& terminal = options_.terminal;
  const bool known = fraction >= 0 && fraction <= 1;
  std::string bar;
  int bar_width = 0;
  // A narrow terminal has room for words only: a line that wraps could not be erased.
  if (known && terminal.width >= kBarWidth + 36) {
    const int full = static_cast<int>(std::lround(fraction * kBarWidth));
    const CardStyle style{terminal.colour, terminal.unicode, terminal.width};
    bar = Painted({Repeated(terminal.unicode ? "━" : "#", full), Tone::kGood}, style) +
          Painted({Repeated(terminal.unicode ? "─" : "-", kBarWidth - full), Tone::kFaint}, style) +
          fmt::format(" {:3.0f}%  ", std::floor(fraction * 100));
    bar_width = kBarWidth + 7;
  }
  const std::string words = Printable(stage, terminal.unicode);
  visible_ = true;
  Write("\r\x1b[K" + bar + Shortened(words, terminal.width - 1 - bar_width, terminal.unicode));
}

void Progress::Write(const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t count = ::write(options_.fd, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    at += static_cast<size_t>(count);
  }
}

}  // namespace assay
