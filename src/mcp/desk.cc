#include "mcp/desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "machine/machine.h"
#include "mcp/attempt.h"
#include "model/outcome.h"
#include "model/verdict_json.h"
#include "problem/gradients.h"
#include "report/text_diff.h"
#include "runner/job.h"
#include "web/compare_page.h"
#include "worker/protocol.h"
#include "worker_client/event.h"

namespace assay {
namespace {

constexpr double kProblemWaitS = 55, kCheckWaitS = 30;
constexpr int64_t kPromptTokensMax = 32'000;
constexpr size_t kDiffBytesMax = 64 << 10;
constexpr size_t kSignaturesMax = 256;

std::string TextOf(const McpJson& arguments, const char* name) {
  return arguments.value(name, std::string());
}

// Arguments have been checked against the tool's schema.
Result<ProblemChoice> ChoiceOf(const McpJson& arguments) {
  ProblemChoice choice{
      TextOf(arguments, "problem"), TextOf(arguments, "size"), {}, arguments.value("grad", false)};
  const auto set = arguments.find("set");
  if (set == arguments.end()) return choice;
  for (const auto& [name, value] : set->items()) {
    const std::string text = value.is_string()    ? value.get<std::string>()
                             : value.is_boolean() ? (value.get<bool>() ? "True" : "False")
                                                  : value.dump();
    ASSAY_ASSIGN_OR_RETURN(auto setting, ParseSetting(fmt::format("{}={}", name, text)));
    choice.set.insert(std::move(setting));
  }
  return choice;
}

Result<CandidateSource> SourceOf(const McpJson& arguments) {
  const std::string language = TextOf(arguments, "language");
  if (language.empty()) return UsageError("a source needs its 'language': cpp, c, cuda or python");
  const std::string suffix = language == "cuda" ? "cu" : language == "python" ? "py" : language;
  return CandidateFromAnswer("candidate." + suffix, TextOf(arguments, "source"));
}

// The name of a size, or none.
std::vector<std::string> SizesOf(const ProblemRequest& problem) {
  std::vector<std::string> sizes;
  if (const auto described = FindInSuite(problem.path))
    for (const auto& [name, constants] : described->sizes) sizes.push_back(name);
  return sizes;
}

bool SameQuestion(const Verdict& a, const Verdict& b) {
  return a.problem.hash == b.problem.hash && a.problem.size == b.problem.size &&
         a.problem.set == b.problem.set;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The machine, as a kernel's author must know it; empty: nothing is known of its GPU.
std::string MachineOf(const DeskTerms& terms) {
  Machine machine = DescribeMachine();
  machine.threads = terms.judging.threads > 0 ? terms.judging.threads : DefaultThreads();
  if (terms.judging.device == "cuda") {
    if (terms.machine.gpus.empty()) return {};
    machine.gpu = terms.machine.gpus.front().name;
  }
  return MachineText(machine, terms.machine);
}

}  // namespace

Desk::Desk(Seat& seat, Budget budget, DeskPorts ports, DeskTerms terms)
    : ports_(std::move(ports)),
      terms_(std::move(terms)),
      budget_(std::move(budget)),
      jobs_(seat, budget_,
            {ports_.now_ns,
             [this](const McpJob& job) {
               ports_.record(RecordOfJob(terms_.session, "began", job, false));
             },
             [this](const McpJob& job) { Ended(job); }}) {}

void Desk::Ended(const McpJob& job) {
  ports_.record(RecordOfJob(terms_.session, "ended", job, false));
  if (job.tool == "problem_get" && job.state == McpJobState::kDone) {
    const auto event = ParseWorkerEvent((*job.done)->text);
    if (signatures_.size() >= kSignaturesMax) signatures_.clear();
    if (event && event->kind == WorkerEvent::Kind::kDescription)
      signatures_[job.terms] = event->signature;
  }
  if (!job.done || !*job.done || !(*job.done)->verdict) return;
  const std::string source = job.source ? job.source->content : std::string();
  const Verdict& verdict = *(*job.done)->verdict;
  ports_.judged({verdict.candidate.path, source, verdict.problem.name, job.terms}, verdict);
}

std::variant<ToolReply, ToolWait> Desk::Call(const std::string& tool, const McpJson& arguments) {
  auto served = Serve(tool, arguments);
  const std::string error = served ? "" : served.error().message;
  ports_.record(RecordOfCall(terms_.session, tool, arguments, error));
  if (!served) return RefusedReply(served.error());
  return std::move(*served);
}

Desk::Outcome Desk::Serve(const std::string& tool, const McpJson& arguments) {
  ASSAY_RETURN_IF_ERROR(CheckArguments(*list_.Find(tool), arguments));
  if (tool == "problem_list") return ListProblems(arguments);
  if (tool == "problem_get") return GetProblem(arguments);
  if (tool == "job_status") return Status(arguments);
  if (tool == "compare") return Compare(arguments);
  if (tool == "explain") return Explain(arguments);
  if (tool == "profile" && !arguments.contains("source")) return ProfileReference(arguments);
  return Judge(tool, arguments);
}

Desk::Outcome Desk::ListProblems(const McpJson& arguments) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Suite> suites, ports_.suites());
  const auto level = arguments.value("level", 0);
  const std::string mechanism = TextOf(arguments, "mechanism");
  ToolReply reply;
  McpJson problems = McpJson::array();
  for (const Suite& suite : suites) {
    for (const SuiteProblem& problem : suite.problems) {
      if ((level != 0 && problem.level != level) ||
          (!mechanism.empty() && problem.mechanism != mechanism))
        continue;
      std::vector<std::string> sizes;
      for (const auto& [name, constants] : problem.sizes) sizes.push_back(name);
      problems.push_back({{"name", problem.name},
                          {"level", problem.level},
                          {"mechanism", problem.mechanism},
                          {"lesson", problem.lesson},
                          {"sizes", sizes}});
      reply.text += fmt::format("{} (level {}, {}; sizes {}): {}\n", problem.name, problem.level,
                                problem.mechanism, Joined(sizes), problem.lesson);
    }
  }
  if (problems.empty())
    return UsageError("no problem is like that: leave out level and mechanism to list all");
  const std::string next = "Call problem_get with a name and a size.";
  reply.text += "Next: " + next;
  reply.structured = {{"problems", std::move(problems)}, {"next", next}};
  return reply;
}

Desk::Outcome Desk::GetProblem(const McpJson& arguments) {
  ASSAY_ASSIGN_OR_RETURN(const ProblemChoice choice, ChoiceOf(arguments));
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem, ports_.resolve(choice));
  AskedTerms terms = terms_.judging;
  terms.problem = choice;
  const std::string key = TermsText(terms);
  const std::string form =
      arguments.value("form", terms_.judging.device == "cuda" ? "device" : "native");
  const auto answer = [this, problem, form](const std::vector<std::string>& signature) {
    const auto described = [&]() -> Result<ToolReply> {
      const bool gradients = HasGradients(problem);
      PromptSubject subject{problem};
      subject.signature = signature;
      subject.form = form;
      subject.by_call = true;
      subject.machine = MachineOf(terms_);
      ASSAY_ASSIGN_OR_RETURN(const std::string entry, EntryOf(signature, form, gradients));
      ASSAY_ASSIGN_OR_RETURN(
          const BuiltPrompt prompt,
          BuildPrompt(*terms_.templates, PromptOperator::kImplement, subject, kPromptTokensMax));
      const std::vector<std::string> sizes = SizesOf(problem);
      const std::string task = prompt.system + "\n\n" + prompt.text;
      const std::string next = fmt::format(
          "Write the whole file, and send it as the source of kernel_check, with the same problem "
          "and size{}.",
          gradients ? ", and with grad" : "");
      ToolReply reply;
      reply.structured = {{"problem", problem.name},
                          {"size", problem.size},
                          {"sizes", sizes},
                          {"form", form},
                          {"signature", signature},
                          {"entry", entry},
                          {"reference", SourceWithoutGradients(problem.source)},
                          {"task", task},
                          {"next", next}};
      reply.text = fmt::format("{}{}; sizes: {}\n\n{}\n\nNext: {}", problem.name,
                               problem.size.empty() ? "" : " at size " + problem.size,
                               sizes.empty() ? "none are named" : Joined(sizes), task, next);
      return reply;
    };
    auto reply = described();
    return reply ? std::move(*reply) : RefusedReply(reply.error());
  };
  if (const auto known = signatures_.find(key); known != signatures_.end())
    return answer(known->second);
  McpJob job;
  job.tool = "problem_get";
  job.problem = problem.name;
  job.terms = key;
  job.work = [this, terms](double seconds_max) -> SeatWork {
    const std::string line = DescribeLine(kJobRequestId, terms);
    return [ask = ports_.ask_worker, line, seconds_max](const WorkLook& look,
                                                        StopToken stop) -> Result<WorkDone> {
      WorkDone done;
      ASSAY_ASSIGN_OR_RETURN(done.text, ask(line, seconds_max, look, stop));
      return done;
    };
  };
  ASSAY_ASSIGN_OR_RETURN(const std::string handle, AddJob(std::move(job), true));
  ToolWait wait{handle, kProblemWaitS, true, nullptr};
  wait.answer = [this, answer, key](const McpJob& asked) -> ToolReply {
    if (!asked.ended())
      return RefusedReply({ErrorKind::kUsage,
                           fmt::format("the worker is still busy with {}: call job_status for it "
                                       "with wait_s, then problem_get again",
                                       jobs_.running())});
    if (asked.state != McpJobState::kDone) return ReplyOn(asked);
    const auto described = signatures_.find(key);
    if (described == signatures_.end())
      return RefusedReply({ErrorKind::kEnvironment, "the worker did not describe the problem"});
    return answer(described->second);
  };
  return wait;
}

std::function<SeatWork(double)> Desk::JudgeWork(AskedTerms terms, const CandidateSource& source) {
  return [this, terms = std::move(terms), source](double seconds_max) -> SeatWork {
    AskedTerms given = terms;
    given.effort.speed_budget_s = std::min(given.effort.speed_budget_s, seconds_max);
    const std::string line = JudgeLine(kJobRequestId, given, {&source});
    // The desk outlives the seat's work; its members of constant type are read alone.
    return [this, line, source, seconds_max](const WorkLook& look,
                                             StopToken stop) -> Result<WorkDone> {
      WorkDone done;
      ASSAY_ASSIGN_OR_RETURN(const std::string json,
                             ports_.ask_worker(line, seconds_max, look, stop));
      ASSAY_ASSIGN_OR_RETURN(done.verdict, VerdictFromJson(json));
      NativeCode code;
      if (done.verdict->speed) code = ports_.read_code(source, stop);
      done.feedback = FeedbackOf({*done.verdict, source.content, &code, &terms_.machine});
      return done;
    };
  };
}

Result<std::string> Desk::AddJob(McpJob job, bool free) {
  ASSAY_ASSIGN_OR_RETURN(job.handle, ports_.fresh_handle());
  const NewRecord asked = RecordOfJob(terms_.session, "asked", job, free);
  const std::string handle = job.handle, problem = job.problem;
  ASSAY_RETURN_IF_ERROR(jobs_.Add(std::move(job), free));
  // Also a source that nobody comes to judge is kept.
  if (!asked.source.empty())
    ports_.record(RecordOfFile(RecordKind::kCandidate, handle, problem, asked.source));
  ports_.record(asked);
  return handle;
}

ToolReply Desk::ReplyOn(const McpJob& job) const { return JobReply(job, budget_, ports_.now_ns()); }

ToolWait Desk::WaitFor(const std::string& handle, double seconds, bool owns) {
  return {handle, seconds, owns, [this](const McpJob& job) { return ReplyOn(job); }};
}

Desk::Outcome Desk::Judge(const std::string& tool, const McpJson& arguments) {
  ASSAY_ASSIGN_OR_RETURN(const ProblemChoice choice, ChoiceOf(arguments));
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem, ports_.resolve(choice));
  ASSAY_ASSIGN_OR_RETURN(CandidateSource source, SourceOf(arguments));
  AskedTerms terms = terms_.judging;
  terms.problem = choice;
  terms.threshold = arguments.value("p", 1.0);
  terms.effort.correctness_only = tool == "kernel_check";
  terms.effort.speed_budget_s = arguments.value("budget_s", terms_.judging.effort.speed_budget_s);
  terms.probe = tool == "profile" && !source.IsCuda() && source.form == CandidateForm::kNative;
  terms.profile = tool == "profile" && terms_.counters;
  McpJob job;
  job.tool = tool;
  job.problem = problem.name;
  job.terms = TermsText(terms);
  job.work = JudgeWork(std::move(terms), source);
  job.source = std::move(source);
  ASSAY_ASSIGN_OR_RETURN(const std::string handle, AddJob(std::move(job), false));
  const double wait_s = arguments.value("wait_s", tool == "kernel_judge" ? 0.0 : kCheckWaitS);
  return WaitFor(handle, wait_s, true);
}

Desk::Outcome Desk::ProfileReference(const McpJson& arguments) {
  if (arguments.contains("language"))
    return UsageError("profile needs a 'source' with its 'language', or neither");
  ASSAY_ASSIGN_OR_RETURN(const ProblemChoice choice, ChoiceOf(arguments));
  ASSAY_ASSIGN_OR_RETURN(const ProblemRequest problem, ports_.resolve(choice));
  McpJob job;
  job.tool = "profile";
  job.problem = problem.name;
  job.work = [profile = ports_.profile_reference, problem](double) -> SeatWork {
    return [profile, problem](const WorkLook&, StopToken stop) -> Result<WorkDone> {
      WorkDone done;
      ASSAY_ASSIGN_OR_RETURN(done.text, profile(problem, stop));
      return done;
    };
  };
  ASSAY_ASSIGN_OR_RETURN(const std::string handle, AddJob(std::move(job), false));
  return WaitFor(handle, arguments.value("wait_s", kCheckWaitS), true);
}

Result<ToolReply> Desk::ReplyOnOther(const std::string& handle) const {
  const McpJson record = McpJson::parse(ports_.find_attempt(handle), nullptr, false);
  if (!record.is_object())
    return UsageError(fmt::format(
        "there is no {}: give the handle that kernel_judge, kernel_check, compare or profile "
        "answered",
        handle));
  const bool ended = record.value("what", "") == "ended";
  const std::string state = ended ? record.value("state", "") : "cancelled";
  const std::string next =
      record.contains("verdict")
          ? fmt::format("Call explain with {{\"verdict\": \"{}\"}} for its lesson.",
                        record.value("verdict", ""))
          : "It was the job of an earlier server, and has no verdict: call again.";
  ToolReply reply;
  reply.structured = {{"job", handle}, {"tool", record.value("tool", "")}, {"state", state}};
  for (const char* name : {"verdict", "outcome", "error"})
    if (record.contains(name)) reply.structured[name] = record[name];
  reply.structured["budget"] = BudgetFacts(budget_);
  reply.structured["next"] = next;
  reply.text = fmt::format("{}: {}, {}{}.\nNext: {}", handle, record.value("tool", ""), state,
                           record.contains("verdict")
                               ? fmt::format("; verdict {}, {}", record.value("verdict", ""),
                                             record.value("outcome", ""))
                               : "",
                           next);
  return reply;
}

Desk::Outcome Desk::Status(const McpJson& arguments) {
  const std::string handle = TextOf(arguments, "job");
  if (jobs_.Find(handle) == nullptr) return ReplyOnOther(handle);
  if (arguments.value("cancel", false)) {
    jobs_.Cancel(handle);
    // A running job ends a moment later.
    return WaitFor(handle, std::max(arguments.value("wait_s", 0.0), kCheckWaitS), false);
  }
  return WaitFor(handle, arguments.value("wait_s", 0.0), false);
}

Result<KnownVerdict> Desk::Find(const std::string& reference) {
  const McpJob* job = jobs_.Find(reference);
  if (job == nullptr && reference.starts_with("job-")) {
    const McpJson record = McpJson::parse(ports_.find_attempt(reference), nullptr, false);
    if (!record.is_object() || !record.contains("verdict"))
      return UsageError(fmt::format("{} is no job that gave a verdict", reference));
    return ports_.find_verdict(record.value("verdict", ""));
  }
  if (job == nullptr) return ports_.find_verdict(reference);
  if (!job->ended())
    return UsageError(
        fmt::format("{} has not ended: call job_status for it with wait_s first", reference));
  if (job->state != McpJobState::kDone || !(*job->done)->verdict)
    return UsageError(fmt::format("{} gave no verdict: job_status says why", reference));
  return KnownVerdict{*(*job->done)->verdict, job->source ? job->source->content : ""};
}

Desk::Outcome Desk::Explain(const McpJson& arguments) {
  ASSAY_ASSIGN_OR_RETURN(const KnownVerdict known, Find(TextOf(arguments, "verdict")));
  const Verdict& verdict = known.verdict;
  const std::string lesson =
      FeedbackText(FeedbackOf({verdict, known.source, nullptr, &terms_.machine}));
  const std::string next = NextAfter(verdict);
  ToolReply reply;
  reply.structured = {{"verdict", verdict.id},
                      {"problem", verdict.problem.name},
                      {"size", verdict.problem.size},
                      {"outcome", OutcomeName(verdict.outcome)},
                      {"meaning", FactsOf(verdict.outcome).meaning},
                      {"text", lesson},
                      {"next", next}};
  reply.text =
      fmt::format("Verdict {} on {}: {}: {}.\n\n{}\n\nNext: {}", verdict.id, verdict.problem.name,
                  OutcomeName(verdict.outcome), FactsOf(verdict.outcome).meaning, lesson, next);
  return reply;
}

Desk::Outcome Desk::Compare(const McpJson& arguments) {
  ASSAY_ASSIGN_OR_RETURN(const KnownVerdict a, Find(TextOf(arguments, "a")));
  ASSAY_ASSIGN_OR_RETURN(const KnownVerdict b, Find(TextOf(arguments, "b")));
  const bool same = SameQuestion(a.verdict, b.verdict);
  const bool measure = arguments.value("measure", false);
  std::string diff = UnifiedDiff(a.source, b.source, "a", "b");
  if (diff.size() > kDiffBytesMax)
    diff = diff.substr(0, kDiffBytesMax) + "\n(the rest is left out)";
  ToolReply reply;
  reply.structured = {{"a", VerdictFacts(a.verdict)},
                      {"b", VerdictFacts(b.verdict)},
                      {"same_question", same},
                      {"text", UnpairedText(a.verdict, b.verdict)},
                      {"diff", diff}};
  const auto finish = [reply](const std::string& next, const ToolReply* measured) {
    ToolReply whole = reply;
    if (measured != nullptr) {
      whole.structured["measured"] = measured->structured;
      whole.is_error = measured->is_error;
    }
    whole.structured["next"] = next;
    whole.text = fmt::format(
        "A: {}\nB: {}\n{}\n\n{}\n{}", whole.structured["a"].dump(), whole.structured["b"].dump(),
        whole.structured["text"].get<std::string>(), whole.structured["diff"].get<std::string>(),
        measured != nullptr ? "B against A: " + measured->text : "Next: " + next);
    return whole;
  };
  if (!measure)
    return finish(same ? "Call compare with measure to have B judged against A, pair by pair."
                       : "Judge both on the same problem at the same size, then compare.",
                  nullptr);
  if (!same)
    return UsageError("both must be verdicts on the same problem at the same size to be measured");
  if (a.source.empty() || b.source.empty())
    return UsageError("the source of one of the two is not known: judge both here first");
  AskedTerms terms = terms_.judging;
  terms.problem = {b.verdict.problem.path, b.verdict.problem.size, b.verdict.problem.set,
                   HasGradients(b.verdict.problem)};
  ASSAY_ASSIGN_OR_RETURN(terms.against, ports_.write_file(a.verdict.candidate.path, a.source));
  ASSAY_ASSIGN_OR_RETURN(CandidateSource source,
                         CandidateFromText(b.verdict.candidate.path, b.source));
  McpJob job;
  job.tool = "compare";
  job.problem = b.verdict.problem.name;
  job.terms = TermsText(terms);
  job.work = JudgeWork(std::move(terms), source);
  job.source = std::move(source);
  ASSAY_ASSIGN_OR_RETURN(const std::string handle, AddJob(std::move(job), false));
  ToolWait wait{handle, arguments.value("wait_s", 0.0), true, nullptr};
  wait.answer = [this, finish](const McpJob& measured) {
    const ToolReply on = ReplyOn(measured);
    return finish(on.structured["next"].get<std::string>(), &on);
  };
  return wait;
}

}  // namespace assay
