#include "model/sample_verdicts.h"

#include "base/hash.h"

namespace assay {
namespace {

constexpr Outcome kAllOutcomes[] = {
    Outcome::kFaster,      Outcome::kSlower,    Outcome::kTie,      Outcome::kNotFaster,
    Outcome::kCorrect,     Outcome::kUnsettled, Outcome::kWrong,    Outcome::kWeightsDiffer,
    Outcome::kBuildFailed, Outcome::kCrashed,   Outcome::kTimedOut, Outcome::kOutOfMemory,
    Outcome::kFoul,
};

Verdict Common(const std::string& file) {
  Verdict verdict;
  verdict.id = "3f2a9c01d4e7";
  verdict.created = "2026-11-21T07:00:00Z";
  verdict.problem.name = "softmax";
  verdict.problem.path = "problems/level1/softmax.py";
  verdict.problem.hash = Sha256Hex("problem");
  verdict.problem.level = 1;
  verdict.problem.size = "small";
  verdict.problem.dtype = "float32";
  verdict.problem.signature = {"input x float32[512, 4096]", "output out float32[512, 4096]"};
  verdict.candidate.path = "kernels/softmax/" + file;
  verdict.candidate.hash = Sha256Hex(file);
  verdict.candidate.form = CandidateForm::kNative;
  verdict.candidate.language = Language::kCpp;
  verdict.candidate.trust = "sandboxed";
  verdict.candidate.flags = "-O3 -march=native -fopenmp";
  verdict.candidate.artifact = Sha256Hex("built from " + file);
  verdict.cost = {.build_s = 0.84,
                  .start_s = 0.31,
                  .fill_s = 0.92,
                  .timed_s = 0.71,
                  .overhead_s = 0.18,
                  .total_s = 2.96,
                  .build_cached = false};
  verdict.machine = {
      .cpu = "AMD EPYC 7B13",
      .cores = 2,
      .threads = 2,
      .gpu = "",
      .kernel = "6.1.0-28-amd64",
      .isolation = "bubblewrap 0.8.0, own uid, seccomp, landlock 2, cgroup v1 (memory, pids)"};
  verdict.toolchain = {{"assay", "0.1.0"},
                       {"compiler", "g++ (Debian 12.2.0-14) 12.2.0"},
                       {"pytorch", "1.13.1"},
                       {"python", "3.11.2"}};
  verdict.seed = 17264218839157064961u;
  return verdict;
}

Correctness Passed() {
  Correctness correctness;
  correctness.passed = true;
  correctness.calls_checked = 412;
  correctness.error_ratio = 0.4375;
  correctness.max_abs_error = 1.1920928955078125e-7;
  correctness.precision_class = "float32";
  correctness.required_class = "float32";
  correctness.tolerance = "error-ratio";
  uint64_t seed = 9007199254740993u;  // beyond what a double can hold
  for (const char* kind :
       {"ordinary", "ordinary", "ordinary", "large-offset", "wide-range", "tiny-scale",
        "signed-zeros", "ties", "small-integers", "zero-one", "outlier"})
    correctness.draws.push_back({kind, seed++, "passed", "", 0.3125});
  correctness.draws.push_back({"huge-scale", seed, "dropped", "the reference gives infinity", 0});
  return correctness;
}

Speed Measured(double speedup, const std::string& decision) {
  const double reference_ns = 4.02e6;
  BaselineResult result;
  result.time_ns = reference_ns;
  result.candidate_time_ns = reference_ns / speedup;
  result.speedup = speedup;
  result.ci_low = speedup * 0.988;
  result.ci_high = speedup * 1.009;
  result.confidence = 0.9961;
  result.decision = decision;
  result.smallest_visible = 1.016;
  if (decision == "faster") result.certified_speedup = speedup * 0.97;
  result.delta = 0.01;
  result.clear_margin = 0.5;
  result.pairs = 9;
  result.rounds = 4;
  result.calls_per_block = 24;
  Speed speed;
  speed.passed = decision == "faster";
  speed.headline = "eager";
  speed.baselines["eager"] = result;
  return speed;
}

Roofline Measured(const Speed& speed) {
  const BaselineResult& eager = speed.baselines.at("eager");
  Roofline roofline;
  roofline.bandwidth_bytes_s = 13.1e9;
  roofline.rate_operations_s = 92e9;
  roofline.instructions = "avx512f";
  roofline.empty_call_ns = 60;
  roofline.bound_ns = 1.2807e6;
  roofline.regime = "memory";
  roofline.percent_of_peak = 100 * roofline.bound_ns / eager.candidate_time_ns;
  roofline.reference_percent_of_peak = 100 * roofline.bound_ns / eager.time_ns;
  return roofline;
}

std::vector<PairSamples> Samples() {
  return {{"eager",
           "rccrcrrc",
           {96480000, 38400000, 38510000, 96900000, 38200000, 96500000, 96610000, 38290000},
           {0, 0, 0, 0, 0, 0, 0, 0}},
          {"eager", "crrc", {38300000, 96700000, 96600000, 38250000}, {0, 0, 0, 0}}};
}

Verdict Timed(Outcome outcome, const std::string& file, double speedup,
              const std::string& message) {
  Verdict verdict = Common(file);
  verdict.outcome = outcome;
  verdict.message = message;
  verdict.correctness = Passed();
  verdict.speed = Measured(speedup, std::string(OutcomeName(outcome)));
  verdict.work = Work{10485760, "suite", 16777216, 8388608, "signature", 50331648, 25165824};
  verdict.roofline = Measured(*verdict.speed);
  verdict.libraries = LibraryTime{118, 0.025, {{"libopenblas.so.0", 0.025}}};
  verdict.samples = Samples();
  return verdict;
}

Verdict Broken(Outcome outcome, const std::string& file, const std::string& message,
               const std::string& log) {
  Verdict verdict = Common(file);
  verdict.outcome = outcome;
  verdict.message = message;
  verdict.log = log;
  return verdict;
}

Verdict Wrong() {
  Verdict verdict =
      Broken(Outcome::kWrong, "off_by_one.cpp",
             "Outputs differ from the reference beyond the bound on the first ordinary draw.", "");
  Correctness correctness = Passed();
  correctness.passed = false;
  correctness.calls_checked = 1;
  correctness.error_ratio = 5421.8;
  correctness.max_abs_error = 0.0021;
  correctness.precision_class = "";
  correctness.first_mismatch = Mismatch{"out", {0, 4095}, 0.00021734, 0, 1.0 / 4096};
  correctness.hint =
      "Only the last column is wrong, in every row: a loop that stops one element early.";
  correctness.mistake = Mistake::kPart;
  correctness.draws = {{"ordinary", 77, "failed", "out[0, 4095] is outside its bound", 5421.8}};
  verdict.correctness = correctness;
  return verdict;
}

// Judged at constants of the user's choice, against two baselines and a threshold above 1.
Verdict Slower() {
  Verdict verdict = Timed(Outcome::kSlower, "naive.cpp", 0.314,
                          "naive.cpp is correct, but takes 3.18 times as long as eager PyTorch.");
  verdict.problem.size = "";
  verdict.problem.set = {{"batch_size", "512"}, {"dim", "4096 * 2"}};
  verdict.correctness->note = "weights were matched by order, not by name";
  verdict.speed->threshold = 1.5;
  verdict.speed->baselines["compiled"] = Measured(0.21, "slower").baselines.at("eager");
  return verdict;
}

Verdict CaughtCheating() {
  Verdict verdict = Broken(Outcome::kFoul, "thread_behind.cpp",
                           "The candidate ran while it had to be asleep.", "");
  verdict.correctness = Passed();
  verdict.foul = Foul{
      "ran-while-asleep",
      "its processor clock advanced by 3.1 ms between freeze and thaw, before block 4 of pair 1"};
  verdict.samples = Samples();
  return verdict;
}

}  // namespace

Verdict SampleVerdict(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFaster:
      return Timed(outcome, "fused.cpp", 2.512,
                   "fused.cpp is correct, and 2.51 times as fast as eager PyTorch.");
    case Outcome::kSlower:
      return Slower();
    case Outcome::kTie: {
      Verdict verdict =
          Timed(outcome, "plain.cpp", 1.003,
                "plain.cpp is correct, and no faster or slower than this test can see.");
      verdict.speed->against = {"other.cpp", std::string(64, 'b')};
      return verdict;
    }
    case Outcome::kNotFaster: {
      Verdict verdict = Timed(outcome, "early.cpp", 0.7,
                              "early.cpp is correct, and is not going to be faster than eager.");
      verdict.speed->baselines["eager"].decision = "not_faster";
      return verdict;
    }
    case Outcome::kCorrect: {
      Verdict verdict = Timed(outcome, "checked.cpp", 1, "correct; its speed was not asked for");
      verdict.speed.reset();
      verdict.samples.clear();
      verdict.roofline.reset();
      return verdict;
    }
    case Outcome::kWeightsDiffer:
      return Broken(outcome, "other_names.py",
                    "its weights differ from the reference's, of which it lacks norm_weight", "");
    case Outcome::kUnsettled: {
      Verdict verdict =
          Timed(outcome, "jumpy.cpp", 1.04, "32 pairs were too noisy to say which is faster.");
      verdict.speed->baselines["eager"].pairs = 32;
      verdict.speed->baselines["eager"].note =
          "pairs differ by 9%, more than the gain that was looked for";
      return verdict;
    }
    case Outcome::kWrong:
      return Wrong();
    case Outcome::kBuildFailed: {
      Verdict verdict =
          Broken(outcome, "typo.cpp", "line 12: error: 'exqf' was not declared in this scope",
                 "/candidate/typo.cpp:12:14: error: 'exqf' was not declared in this scope\n");
      verdict.line = 12;
      return verdict;
    }
    case Outcome::kCrashed:
      return Broken(outcome, "wild.cpp", "SIGSEGV at address 0x10 in call 1 of gate 1.",
                    "rows 512\n\x1b[31mcolumns 4096\x1b[0m\n");
    case Outcome::kTimedOut:
      return Broken(outcome, "endless.cpp",
                    "The first call had not returned after 10 s, when it was stopped.", "");
    case Outcome::kOutOfMemory: {
      Verdict verdict = Broken(outcome, "greedy.cpp",
                               "Stopped at its memory limit of 4.0 GiB in call 1 of gate 1.", "");
      verdict.cause = Cause::kMemoryLimit;
      return verdict;
    }
    case Outcome::kFoul:
      return CaughtCheating();
  }
  return Common("unknown.cpp");
}

Verdict SampleGpuVerdict() {
  Verdict verdict =
      Timed(Outcome::kFaster, "two_passes.cu", 1.42, "correct, and 1.42x the speed of eager");
  verdict.candidate.form = CandidateForm::kDevice;
  verdict.candidate.language = Language::kCuda;
  verdict.candidate.trust = "device-only";
  verdict.machine.gpu = "NVIDIA H200 (sm_90a, driver for CUDA 13.0)";
  verdict.libraries.reset();
  KernelRecord row_max{"row_max", 24, 0, 128, 1, 128, 512, 1, "threads", 0.2424, {}, 4};
  row_max.instructions = {{"float32", 14}, {"global_load", 4}, {"integer", 31}, {"branch", 5}};
  KernelRecord divide{"divide<256>", 167,   256,         33792, 1,  256,
                      4096,          0.125, "registers", 31.03, {}, 4};
  divide.instructions = {{"float32", 220}, {"global_load", 8}, {"local", 64}, {"special", 16}};
  verdict.kernels = {row_max, divide};
  verdict.samples[0].sm_mhz = {1980, 1980, 1965, 1980, 1965, 1965, 1980, 1965};
  verdict.samples[0].clock_limits = {"power cap"};
  verdict.samples[0].charged_ns = {0, 12'000, 12'000, 0, 9'000, 0, 0, 9'000};
  verdict.speed->baselines.at("eager").launched = LaunchedTimes{31'250.5, 21'500};
  verdict.samples[0].alone = CallsAlone{31'000, 24'500, 32'250, 24'625};
  verdict.bottleneck =
      "divide<256> keeps 256 bytes a thread in local memory, beside 167 registers: registers that "
      "were spilled, or an array that is indexed at run time";
  KernelProfile heavy{"divide<256>", 1,     0.8125, 34.5, 41.25, 22.5, 0,
                      113'776'128.0, 50.75, 100,    87.5, 0.25,  12.5};
  heavy.stalls = {{"long_scoreboard", 62.5}, {"lg_throttle", 12.25}, {"wait", 8}};
  KernelProfile light;
  light.name = "row_max";
  light.launches = 2;
  light.cycles_share = 0.1875;
  verdict.profile = ProfileRecord{{heavy, light}, ""};
  verdict.sanitizer = SanitizerRecord{
      "memcheck", 25, {"Invalid __global__ write of size 4 bytes at divide<256>+0x90"}, ""};
  verdict.coverage =
      OperatorCoverage{14, 12, 1, {{"add", 21, "add in line 21 drops its second term", 0.125, ""}}};
  verdict.sustained = SustainedRecord{
      "eager",
      10,
      {640, 33'500, 0.9375, {20'000'000, 21'440'000, 21'440'000}, {1980, 1980, 1935}},
      {900,
       25'000,
       0.90625,
       {19'350'000, 22'500'000, 22'500'000},
       {1980, 1710, 1695},
       {"power cap"}}};
  return verdict;
}

std::vector<Verdict> SampleVerdicts() {
  std::vector<Verdict> verdicts;
  for (const Outcome outcome : kAllOutcomes) verdicts.push_back(SampleVerdict(outcome));
  verdicts.push_back(SampleGpuVerdict());
  return verdicts;
}

}  // namespace assay
