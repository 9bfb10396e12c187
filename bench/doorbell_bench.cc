// Round trip of the doorbell (src/wire/doorbell.h) between two processes that share a page, each on
// a core of its own where there are two: the judge's "go" and the host's "done" around an empty
// block.
//
//   doorbell_bench --benchmark_format=json

#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "machine/machine.h"
#include "wire/doorbell.h"

namespace assay::wire {
namespace {

struct alignas(64) Word {
  uint32_t value;
};
struct Page {
  Word go, done;
};

constexpr uint64_t kSpinForEver = UINT64_MAX;

// A process that answers each ring of `go` by one of `done`.
class Echo {
 public:
  explicit Echo(uint64_t spin_count) : spin_(spin_count == kSpinForEver) {
    void* memory =
        mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    page_ = static_cast<Page*>(memory);
    pid_ = fork();
    if (pid_ != 0) return;
    BindThisThread({UsableCpus()[1]});
    for (uint32_t value = 1;; ++value) {
      AwaitValue(page_->go.value, value, spin_count);
      Ring(page_->done.value, value, !spin_);
    }
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  ~Echo() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(page_, sizeof(Page));
  }

  void RoundTrip(uint64_t spin_count) {
    ++value_;
    Ring(page_->go.value, value_, !spin_);
    AwaitValue(page_->done.value, value_, spin_count);
  }

 private:
  Page* page_;
  pid_t pid_;
  bool spin_;
  uint32_t value_ = 0;
};

void RoundTrip(benchmark::State& state, uint64_t spin_count) {
  if (UsableCpus().size() < 2) {
    state.SkipWithError("needs two cores");
    return;
  }
  BindThisThread({UsableCpus()[0]});
  Echo echo(spin_count);
  for (auto _ : state) echo.RoundTrip(spin_count);
}

BENCHMARK_CAPTURE(RoundTrip, spinning, kSpinForEver)->UseRealTime();
BENCHMARK_CAPTURE(RoundTrip, futex, uint64_t{0})->UseRealTime();

}  // namespace
}  // namespace assay::wire

BENCHMARK_MAIN();
