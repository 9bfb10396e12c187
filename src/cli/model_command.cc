#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "base/median.h"
#include "cli/exit_code.h"
#include "cli/model_options.h"
#include "doctor/doctor.h"
#include "gpu/gpu.h"
#include "machine/machine.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "studies/candidate_study.h"
#include "swap/compose.h"
#include "swap/model_report.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// The manifest that is asked for: the file, or the folder's for the device. Of several for one
// device the first one, by name.
Result<SwapManifest> FindManifest(const ModelOptions& options, bool has_gpu) {
  std::error_code code;
  if (!fs::is_directory(options.path, code)) return ReadSwapManifest(options.path);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(options.path, code))
    if (entry.path().extension() == ".toml" && entry.path().filename() != "suite.toml")
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  const std::string wanted = !options.device.empty() ? options.device : has_gpu ? "cuda" : "cpu";
  for (const std::string& file : files) {
    ASSAY_ASSIGN_OR_RETURN(SwapManifest manifest, ReadSwapManifest(file));
    if (manifest.device == wanted) return manifest;
  }
  return UsageError(
      fmt::format("{} has no manifest of a model for {}: name a .toml file", options.path, wanted));
}

// The places to swap, in the manifest's order.
Result<std::vector<const SwapPlace*>> PlacesOf(const SwapManifest& manifest,
                                               const std::string& only) {
  std::vector<const SwapPlace*> places;
  std::istringstream stream(only);
  std::vector<std::string> names;
  for (std::string name; std::getline(stream, name, ',');) {
    if (manifest.Find(name) == nullptr) {
      std::vector<std::string> known;
      for (const SwapPlace& place : manifest.places) known.push_back(place.name);
      return UsageError(fmt::format("--only {}: {} has no place '{}'; it has {}", only,
                                    manifest.Path(), name, fmt::join(known, ", ")));
    }
    names.push_back(name);
  }
  for (const SwapPlace& place : manifest.places)
    if (manifest.device == "cuda" && place.kernel.path.empty())
      continue;  // it stays as it is
    else if (names.empty() || std::find(names.begin(), names.end(), place.name) != names.end())
      places.push_back(&place);
  return places;
}

int CodeOf(const Verdict& verdict) {
  return IsCorrect(verdict.outcome) ? static_cast<int>(kExitGood) : ExitCodeOf(verdict.outcome);
}

ProgressOptions ProgressFor(const ModelOptions& options) {
  ProgressOptions progress;
  if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
  progress.verbose = options.verbose && !options.quiet;
  return progress;
}

// Composes, judges and measures the models of one call.
class ModelRun {
 public:
  ModelRun(const ModelOptions& options, const SwapManifest& manifest,
           const std::vector<const SwapPlace*>& places, StopToken stop)
      : options_(options),
        manifest_(manifest),
        places_(places),
        stop_(stop),
        progress_(ProgressFor(options)) {}

  // Returns the exit code.
  Result<int> Run() {
    ASSAY_ASSIGN_OR_RETURN(SessionTerms terms, Terms());
    report_.title = manifest_.title;
    report_.problem = terms.problem.name;
    report_.size = terms.problem.size;
    report_.settings = fmt::format("{}", fmt::join(options_.set, ", "));
    report_.device = manifest_.device;
    std::optional<CandidateStudy> study;
    {
      ASSAY_ASSIGN_OR_RETURN(CandidateStudy opened, OpenStudy(terms));
      study.emplace(std::move(opened));
    }
    ASSAY_RETURN_IF_ERROR(Describe(study->description()));
    const std::vector<Link> chain = Chain();
    ASSAY_ASSIGN_OR_RETURN(std::vector<CandidateSource> candidates,
                           ComposeAll(chain, terms.problem, study->description()));
    ASSAY_RETURN_IF_ERROR(Write(candidates));
    if (options_.compose_only) return static_cast<int>(kExitGood);
    ASSAY_RETURN_IF_ERROR(Measure(&*study, terms.problem));
    study.reset();  // its memory and its hosts are in the judge's way
    Result<void> judged;
    if (!options_.parts_only) judged = Judge(std::move(terms), chain, candidates);
    progress_.Clear();
    ASSAY_RETURN_IF_ERROR(Show());  // what was judged before an error stands
    if (!judged) return ReportError(judged.error());
    return CombineExitCodes(codes_);
  }

 private:
  bool on_gpu() const { return manifest_.device == "cuda"; }

  Result<SessionTerms> Terms() const {
    AskedTerms asked = options_.asked;
    asked.device = manifest_.device;
    asked.baselines = options_.baseline.empty() ? manifest_.baselines : options_.baseline;
    asked.problem.problem = (fs::path(manifest_.folder) / manifest_.problem).string();
    asked.problem.size = options_.size.empty() ? manifest_.size : options_.size;
    for (const std::string& text : options_.set) {
      ASSAY_ASSIGN_OR_RETURN(const auto setting, ParseSetting(text));
      asked.problem.set[setting.first] = setting.second;
    }
    ASSAY_ASSIGN_OR_RETURN(SessionTerms terms, ResolveTerms(asked, {}));
    std::string notice;
    terms.machine = LoadMachineProfile(&notice);
    return terms;
  }

  Result<CandidateStudy> OpenStudy(const SessionTerms& terms) {
    progress_.Update("opening the model", 0);
    StudyRequest request{terms.problem, terms.python, terms.threads, terms.limits, stop_};
    request.problem.set[manifest_.trace] = "1";
    if (options_.compose_only) request.problem.device = "cpu";  // it is described alone
    return CandidateStudy::Open(std::move(request));
  }

  // Takes facts of the model from the problem's description.
  Result<void> Describe(const ProblemDescription& description) {
    for (const wire::ArgumentSpec& spec : description.arguments)
      if (spec.name == manifest_.tokens && spec.rank > 0) {
        report_.tokens = spec.shape[0];
        return {};
      }
    return UsageError(fmt::format("{}: tokens: {} has no input '{}'", manifest_.Path(),
                                  manifest_.problem, manifest_.tokens));
  }

  // A model that is judged.
  struct Link {
    Composition composition;
    std::string name;            // of its file, without its ending
    std::optional<size_t> line;  // of the report; nullopt: the model without swaps
  };

  // The models, each with one kernel more; or the last one alone.
  std::vector<Link> Chain() const {
    std::vector<Link> chain;
    if (on_gpu()) chain.push_back({{}, "00_plain", std::nullopt});
    Composition next;
    for (size_t i = 0; i < places_.size(); ++i) {
      next.swapped.insert(places_[i]->name);
      chain.push_back({next, fmt::format("{:02}_{}", i + 1, places_[i]->name), i});
    }
    if (options_.whole) chain.erase(chain.begin(), chain.end() - 1);
    return chain;
  }

  Result<CandidateSource> Compose(const Composition& composition, const std::string& name,
                                  const ProblemRequest& problem,
                                  const ProblemDescription& description) const {
    ASSAY_ASSIGN_OR_RETURN(std::string text,
                           on_gpu() ? ComposeDevice(manifest_, description, composition)
                                    : ComposePython(manifest_, problem.source, composition));
    return CandidateFromText(name + (on_gpu() ? ".cu" : ".py"), std::move(text));
  }

  Result<std::vector<CandidateSource>> ComposeAll(const std::vector<Link>& chain,
                                                  const ProblemRequest& problem,
                                                  const ProblemDescription& description) const {
    std::vector<CandidateSource> candidates;
    for (const Link& link : chain) {
      ASSAY_ASSIGN_OR_RETURN(CandidateSource candidate,
                             Compose(link.composition, link.name, problem, description));
      candidates.push_back(std::move(candidate));
    }
    return candidates;
  }

  Result<void> Write(const std::vector<CandidateSource>& candidates) const {
    if (options_.write.empty()) return {};
    for (const CandidateSource& candidate : candidates)
      ASSAY_RETURN_IF_ERROR(
          WriteFileAtomically(fs::path(options_.write) / candidate.path, candidate.content));
    if (!options_.quiet)
      Notice(fmt::format("wrote {} files to {}", candidates.size(), options_.write));
    return {};
  }

  // The times of calls with nothing doubled, then with each place's work done twice.
  Result<std::vector<std::vector<double>>> DoubledTimes(CandidateStudy* study,
                                                        const ProblemRequest& problem,
                                                        Composition composition,
                                                        const std::string& text) {
    composition.traced = true;
    std::vector<CandidateSource> sources;
    for (size_t i = 0; i <= places_.size(); ++i) {
      composition.doubled = i == 0 ? "" : places_[i - 1]->name;
      ASSAY_ASSIGN_OR_RETURN(
          CandidateSource source,
          Compose(composition, fmt::format("{}_twice_{}", text, composition.doubled), problem,
                  study->description()));
      sources.push_back(std::move(source));
    }
    return study->TimeCalls(sources, options_.rounds, [&](double fraction) {
      progress_.Update(fmt::format("where the time goes: {}", text), fraction);
    });
  }

  Result<void> Measure(CandidateStudy* study, const ProblemRequest& problem) {
    Composition all;
    for (const SwapPlace* place : places_) all.swapped.insert(place->name);
    for (const SwapPlace* place : places_) {
      const std::string& kernel = place->kernel.path;
      report_.lines.push_back({place->name, place->title, kernel, {}, {}});
    }
    if (options_.rounds > 0) {
      ASSAY_ASSIGN_OR_RETURN(const auto before, DoubledTimes(study, problem, {}, "before"));
      ASSAY_ASSIGN_OR_RETURN(const auto after, DoubledTimes(study, problem, all, "after"));
      report_.base_ns = Median(before[0]);
      for (size_t i = 0; i < places_.size(); ++i) {
        const PartTime part{MedianDifference(before[i + 1], before[0]),
                            MedianDifference(after[i + 1], after[0])};
        // Otherwise it is lost in the noise.
        if (part.before_ns > 0 && part.after_ns > 0) report_.lines[i].part = part;
      }
    }
    all.traced = true;
    progress_.Update("errors layer by layer", 0);
    ASSAY_ASSIGN_OR_RETURN(const CandidateSource traced,
                           Compose(all, "traced", problem, study->description()));
    ASSAY_ASSIGN_OR_RETURN(report_.errors, study->Errors(traced, kErrorsSeed));
    return {};
  }

  Result<void> Judge(SessionTerms terms, const std::vector<Link>& chain,
                     const std::vector<CandidateSource>& candidates) {
    JudgeRequest request{std::move(terms), candidates};
    size_t judged = 0;
    std::optional<Error> unjudged;
    JudgeEvents events;
    events.progress = [&](const ProgressEvent& event) {
      const bool of_one = event.candidates > 0 && event.candidate < candidates.size() &&
                          event.stage != JudgeStage::kBuilding;
      progress_.Update(of_one ? candidates[event.candidate].path + ": " + event.text : event.text,
                       event.fraction);
    };
    events.unjudged = [&](const Error& error) {
      unjudged = error;
      ++judged;
    };
    events.verdict = [&](const Verdict& verdict) {
      if (!options_.no_save) KeepVerdict(verdict);
      codes_.push_back(CodeOf(verdict));
      report_.machine = verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu;
      Verdict kept = verdict;
      kept.samples.clear();
      const std::optional<size_t> line = chain[judged++].line;
      (line ? report_.lines[*line].verdict : report_.plain) = std::move(kept);
    };
    ASSAY_RETURN_IF_ERROR(JudgeCandidates(request, events, stop_));
    if (unjudged) return std::unexpected(*unjudged);
    return {};
  }

  Result<void> Show() {
    if (report_.machine.empty())
      report_.machine = on_gpu() ? GpuNames().front() : DescribeMachine().cpu;
    AddGains(&report_);
    const bool unicode = DetectTerminal(STDOUT_FILENO).unicode;
    const std::string text =
        options_.json ? ReportToJson(report_) + "\n" : RenderModelReport(report_, unicode);
    std::fputs(text.c_str(), stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      return EnvironmentError("cannot write the report to stdout");
    if (options_.chart.empty()) return {};
    return WriteFileAtomically(options_.chart, RenderModelSvg(report_));
  }

  static constexpr uint64_t kErrorsSeed = 1;

  const ModelOptions& options_;
  const SwapManifest& manifest_;
  const std::vector<const SwapPlace*>& places_;
  StopToken stop_;
  Progress progress_;
  ModelReport report_;
  std::vector<int> codes_;
};

Result<int> Run(const ModelOptions& options, StopToken stop) {
  const bool has_gpu = !GpuNames().empty();
  ASSAY_ASSIGN_OR_RETURN(const SwapManifest manifest, FindManifest(options, has_gpu));
  if (!options.device.empty() && options.device != manifest.device)
    return UsageError(fmt::format("{} is for {}, not {}: leave --device out", manifest.Path(),
                                  manifest.device, options.device));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<const SwapPlace*> places,
                         PlacesOf(manifest, options.only));
  return ModelRun(options, manifest, places, stop).Run();
}

}  // namespace

int RunModel(const ModelOptions& options) {
  const StopToken stop(InstallInterruptHandler());
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto code = Run(options, stop);
  return code ? *code
              : ReportError(code.error(), options.json ? JsonForm::kDocument : JsonForm::kNone);
}

}  // namespace assay
