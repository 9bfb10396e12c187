#include "session/import_builds.h"

#include <sys/resource.h>
#include <unistd.h>

#include <mutex>
#include <optional>

#include "builders/python_build.h"
#include "machine/machine.h"
#include "values/oracle_host.h"

namespace assay {
namespace {

// Each is an nvcc and a C++ compiler side by side.
constexpr size_t kAtATime = 2;
// Hosts and builds that a worker waits for come first.
constexpr int kNice = 5;

// Python and the device, found once by the first thread that needs them.
class Compiling {
 public:
  explicit Compiling(SessionTerms terms) : terms_(std::move(terms)) {}

  void operator()(const CandidateSource& source, StopToken stop) {
    std::call_once(found_, [this] { Find(); });
    if (!python_ || !gpu_) return;
    const std::string settings = HostSettings(terms_.problem, 1, 0, "eager");
    [[maybe_unused]] const auto compiled =
        CompileImports(source, terms_.limits, *python_, settings, *gpu_, stop);
  }

 private:
  void Find() {
    if (auto python = FindPython(terms_.python)) python_ = std::move(*python);
    if (auto gpu = Gpu::Open()) gpu_ = std::move(*gpu);
  }

  const SessionTerms terms_;
  std::once_flag found_;
  std::optional<PythonRuntime> python_;
  std::optional<Gpu> gpu_;
};

}  // namespace

ImportBuilds::ImportBuilds(std::vector<CandidateSource> sources, const std::atomic<bool>& stop,
                           Compile compile)
    : sources_(std::move(sources)), stop_(stop), compile_(std::move(compile)) {
  for (size_t i = 0; i < std::min(kAtATime, sources_.size()); ++i)
    threads_.emplace_back([this] { Work(); });
}

ImportBuilds::~ImportBuilds() { dropped_ = true; }

void ImportBuilds::Settle() {
  next_ = sources_.size();
  threads_.clear();
}

void ImportBuilds::Work() {
  // The thread that began this one may be bound to the cores of a measurement.
  BindThisThread(UsableCpus());
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  const StopToken stop(stop_, dropped_);
  for (size_t index; (index = next_++) < sources_.size() && !stop.stopped();)
    compile_(sources_[index], stop);
}

std::unique_ptr<ImportBuilds> BeginImportBuilds(SessionTerms terms,
                                                std::vector<CandidateSource> sources,
                                                const std::atomic<bool>& stop) {
  if (terms.problem.device != "cuda") return nullptr;
  std::erase_if(sources, [](const CandidateSource& source) {
    return source.form != CandidateForm::kPython || !CompilesAtImport(source.content);
  });
  if (sources.empty()) return nullptr;
  const auto compiling = std::make_shared<Compiling>(std::move(terms));
  return std::make_unique<ImportBuilds>(
      std::move(sources), stop,
      [compiling](const CandidateSource& source, StopToken token) { (*compiling)(source, token); });
}

}  // namespace assay
