#include "search/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "answer/code_of_answer.h"
#include "base/hash.h"
#include "base/version.h"
#include "problem/nearest.h"
#include "score/attempt.h"
#include "search/env_request.h"
#include "search/episode_record.h"
#include "search/feedback.h"
#include "search/prompt_writer.h"
#include "search/verdict_cache.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kEpisodesMax = 4096;
constexpr size_t kStepsMax = 256;

struct FormFacts {
  std::string_view name, file;
  CodeForm form;
};
constexpr FormFacts kForms[] = {{"native", "candidate.cpp", CodeForm::kNative},
                                {"device", "candidate.cu", CodeForm::kDevice},
                                {"python", "candidate.py", CodeForm::kPython}};

const FormFacts& FormOf(std::string_view name) {
  return *std::ranges::find_if(kForms, [&](const FormFacts& form) { return form.name == name; });
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json EventOf(const std::string& id, std::string_view event) {
  return {{"id", id}, {"event", event}};
}

// The parts of a verdict that rewards are made of.
Json RewardsOf(const Verdict& verdict, double p) {
  const Attempt attempt = AttemptOf(verdict);
  return {{"built", attempt.stage >= Stage::kBuilt},
          {"ran", attempt.stage >= Stage::kRan},
          {"correct", attempt.correct()},
          {"fast", Qualifies(attempt, p, true)},
          {"foul", verdict.outcome == Outcome::kFoul},
          {"speedup", attempt.speedup > 0 ? Json(attempt.speedup) : Json()},
          {"certified_speedup", attempt.certified_speedup}};
}

Json ProblemOf(const ProblemRequest& problem) {
  return {{"name", problem.name}, {"size", problem.size}, {"set", problem.set}};
}

Json MessagesOf(const BuiltPrompt& prompt) {
  Json messages = Json::array();
  if (!prompt.system.empty()) messages.push_back({{"role", "system"}, {"content", prompt.system}});
  messages.push_back({{"role", "user"}, {"content", prompt.text}});
  return messages;
}

}  // namespace

class Environment::Episodes {
 public:
  Episodes(EnvironmentParts parts, EnvironmentTerms terms)
      : parts_(std::move(parts)), terms_(std::move(terms)) {}

  std::string Ready() const;
  std::string Handle(const std::string& line, StopToken stop);
  bool ended() const { return ended_; }

 private:
  struct Task;
  struct Episode;
  struct Stepping;

  Result<std::string> Serve(const std::string& line, std::string* id, StopToken stop);
  Result<std::string> Reset(const Json& json, const std::string& id, StopToken stop);
  Result<std::string> Step(const Json& json, const std::string& id, StopToken stop);
  Result<std::string> Fork(const Json& json, const std::string& id);

  Result<std::shared_ptr<Task>> TaskOf(const ProblemChoice& choice, StopToken stop);
  Result<Episode*> Find(const std::string& id);
  Result<std::string> Add(Episode episode);
  // The step that a request asks for, looked at and not yet judged.
  Result<Stepping> Begin(const Json& json);
  // Judges what has code and is not in the cache.
  void JudgeAll(std::vector<Stepping>* steps, StopToken stop);
  // Takes what came of a step into its episode; returns the event's part on it.
  Result<Json> Settle(Stepping* step);
  // Records what happened in an episode: `facts` and what names it.
  void Record(const std::string& what, const std::string& episode, const Task& task,
              const Json& facts) const;
  void RecordStep(const Stepping& step, Json facts) const;
  void Take(const Verdict& verdict, const CandidateSource& source, Episode* episode);
  // The prompt that an episode stands at.
  Result<BuiltPrompt> Observe(const Episode& episode) const;

  const EnvironmentParts parts_;
  const EnvironmentTerms terms_;
  std::map<std::string, std::shared_ptr<Task>> tasks_;  // by their terms
  std::map<std::string, Episode> open_;
  VerdictCache cache_;
  uint64_t next_episode_ = 1;
  bool ended_ = false;
};

// A problem at one size, with all that episodes on it share.
struct Environment::Episodes::Task {
  ProblemRequest problem;
  AskedTerms terms;
  std::string key;  // problem file and terms, as text
  std::vector<std::string> signature;
  std::string machine, target;  // of prompts; empty until a verdict tells them
};

struct Environment::Episodes::Episode {
  struct Turn {
    std::string source;
    std::vector<FeedbackPart> feedback;
    bool correct = false;
    std::string outcome;
  };
  std::shared_ptr<Task> task;
  int64_t turns = 0;             // that count
  std::optional<Turn> last;      // with code
  std::vector<TriedIdea> tried;  // before it
  std::string trouble;           // of the newest answer, which had no code
};

// One step of a request.
struct Environment::Episodes::Stepping {
  std::string id;  // of the episode
  Episode* episode = nullptr;
  std::string answer;  // as it came
  std::optional<CandidateSource> source;
  std::string trouble;  // why there is no source
  std::string key;      // of the cache
  std::optional<Result<Verdict>> verdict;
  bool cached = false;
};

std::string Environment::Episodes::Ready() const {
  Json names = Json::array();
  for (const ProblemChoice& problem : terms_.problems) names.push_back(problem.problem);
  return Dump({{"event", "ready"},
               {"version", kAssayVersion},
               {"problems", names},
               {"turns", terms_.turns},
               {"formula", RewardFormulaName(terms_.rewards.formula)},
               {"p", terms_.rewards.p}});
}

std::string Environment::Episodes::Handle(const std::string& line, StopToken stop) {
  std::string id;
  auto served = Serve(line, &id, stop);
  if (served) return std::move(*served);
  Json event = EventOf(id, "error");
  event["kind"] = ErrorKindName(served.error().kind);
  event["message"] = served.error().message;
  return Dump(event);
}

Result<std::shared_ptr<Environment::Episodes::Task>> Environment::Episodes::TaskOf(
    const ProblemChoice& choice, StopToken stop) {
  AskedTerms terms = terms_.judging;
  terms.problem = choice;
  const std::string text = TermsText(terms);
  if (const auto known = tasks_.find(text); known != tasks_.end()) return known->second;
  auto task = std::make_shared<Task>();
  ASSAY_ASSIGN_OR_RETURN(task->problem, parts_.resolve(choice));
  ASSAY_ASSIGN_OR_RETURN(task->signature, parts_.judge.Describe(terms, stop));
  task->terms = std::move(terms);
  task->key = Sha256Hex(task->problem.source) + " " + text;
  tasks_[text] = task;
  return task;
}

Result<Environment::Episodes::Episode*> Environment::Episodes::Find(const std::string& id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return UsageError(fmt::format("there is no episode '{}'", id));
  return &found->second;
}

Result<std::string> Environment::Episodes::Add(Episode episode) {
  if (open_.size() >= kEpisodesMax)
    return UsageError(fmt::format("{} episodes are open: close some first", kEpisodesMax));
  const std::string id = fmt::format("e{}", next_episode_++);
  open_[id] = std::move(episode);
  return id;
}

Result<BuiltPrompt> Environment::Episodes::Observe(const Episode& episode) const {
  const Task& task = *episode.task;
  PromptSubject subject{task.problem};
  subject.signature = task.signature;
  subject.form = terms_.form;
  subject.machine = task.machine;
  subject.target = task.target;
  subject.tried = episode.tried;
  subject.budget = fmt::format("Answers left: {}.", terms_.turns - episode.turns);
  PromptOperator which = PromptOperator::kImplement;
  if (episode.last) {
    which = episode.last->correct ? PromptOperator::kRefine : PromptOperator::kRepair;
    subject.parents = {{episode.last->source, episode.last->feedback}};
  }
  ASSAY_ASSIGN_OR_RETURN(BuiltPrompt prompt,
                         BuildPrompt(parts_.templates, which, subject, terms_.prompt_tokens));
  if (!episode.trouble.empty())
    prompt.text =
        "The last answer had no code that can be used: " + episode.trouble + "\n\n" + prompt.text;
  return prompt;
}

void Environment::Episodes::JudgeAll(std::vector<Stepping>* steps, StopToken stop) {
  std::vector<EnvTask> tasks;
  std::map<std::string, size_t> place;  // of a key among the tasks: equal steps share a verdict
  for (Stepping& step : *steps) {
    if (!step.source) continue;
    const Task& task = *step.episode->task;
    step.key =
        VerdictCache::Key(step.source->content, task.key, terms_.toolchain, task.terms.device);
    if (const Verdict* known = cache_.Find(step.key)) {
      step.verdict = *known;
      step.cached = true;
    } else if (place.try_emplace(step.key, tasks.size()).second) {
      tasks.push_back({task.terms, *step.source});
    }
  }
  if (tasks.empty()) return;
  const auto verdicts = parts_.judge.Judge(tasks, stop);
  for (const auto& [key, at] : place)
    if (verdicts[at]) cache_.Keep(key, *verdicts[at]);
  for (Stepping& step : *steps)
    if (step.source && !step.verdict) step.verdict = verdicts[place.at(step.key)];
}

void Environment::Episodes::Record(const std::string& what, const std::string& episode,
                                   const Task& task, const Json& facts) const {
  parts_.record(RecordOfEpisode(
      {terms_.id, episode, what, task.problem.name, TermsText(task.terms)}, Dump(facts)));
}

void Environment::Episodes::RecordStep(const Stepping& step, Json facts) const {
  const Task& task = *step.episode->task;
  if (step.verdict && *step.verdict && !step.cached)
    parts_.judged(
        {step.source->path, step.source->content, task.problem.name, TermsText(task.terms)},
        **step.verdict);
  facts["answer"] = step.answer;
  Record("step", step.id, task, facts);
}

Result<Json> Environment::Episodes::Settle(Stepping* step) {
  Episode& episode = *step->episode;
  Task& task = *episode.task;
  Json json = {{"episode", step->id}};
  if (step->verdict && !*step->verdict) {
    // The machine's failure: no turn was taken.
    if (step->verdict->error().kind == ErrorKind::kInterrupted)
      return std::unexpected(step->verdict->error());
    json["reward"] = nullptr;
    json["rewards"] = nullptr;
    json["failure"] = step->verdict->error().message;
  } else if (step->verdict) {
    const Verdict& verdict = **step->verdict;
    if (task.machine.empty()) task.machine = MachineText(verdict.machine, terms_.machine);
    if (task.target.empty()) task.target = TargetText(verdict);
    Take(verdict, *step->source, &episode);
    const auto reward = RewardOf(verdict, terms_.rewards);
    json["reward"] = reward ? Json(*reward) : Json();
    json["rewards"] = RewardsOf(verdict, terms_.rewards.p);
    json["outcome"] = OutcomeName(verdict.outcome);
    json["message"] = verdict.message;
    json["verdict"] = verdict.id;
    json["cached"] = step->cached;
  } else {
    episode.trouble = step->trouble;
    ++episode.turns;
    json["reward"] = 0;
    json["rewards"] = {{"built", false},        {"ran", false},  {"correct", false},
                       {"fast", false},         {"foul", false}, {"speedup", nullptr},
                       {"certified_speedup", 0}};
    json["outcome"] = "no_code";
    json["message"] = step->trouble;
  }
  json["turn"] = episode.turns;
  json["done"] = episode.turns >= terms_.turns;
  ASSAY_ASSIGN_OR_RETURN(const BuiltPrompt prompt, Observe(episode));
  json["messages"] = MessagesOf(prompt);
  RecordStep(*step, json);
  return json;
}

void Environment::Episodes::Take(const Verdict& verdict, const CandidateSource& source,
                                 Episode* episode) {
  NativeCode code;
  if (verdict.speed) code = parts_.read_code(source);
  if (episode->last)
    episode->tried.push_back({fmt::format("answer {}", episode->turns), episode->last->outcome});
  episode->last =
      Episode::Turn{source.content, FeedbackOf({verdict, source.content, &code, &terms_.machine}),
                    IsCorrect(verdict.outcome), verdict.message};
  episode->trouble.clear();
  ++episode->turns;
}

Result<std::string> Environment::Episodes::Reset(const Json& json, const std::string& id,
                                                 StopToken stop) {
  ASSAY_RETURN_IF_ERROR(
      CheckFields(json, {"id", "request", "problem", "size", "set", "grad", "seed"}));
  ASSAY_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(json));
  ProblemChoice choice;
  if (json.contains("problem")) {
    ASSAY_ASSIGN_OR_RETURN(choice.problem, TextOf(json, "problem"));
  } else if (terms_.problems.empty()) {
    return UsageError("'problem' is missing: the environment was started without problems");
  } else {
    constexpr size_t kDigits = 15;  // of a hash, base 16: below 2^60
    const std::string draw = Sha256Hex(fmt::format("task {}", seed)).substr(0, kDigits);
    choice = terms_.problems[std::stoull(draw, nullptr, 16) % terms_.problems.size()];
  }
  if (json.contains("size")) {
    ASSAY_ASSIGN_OR_RETURN(choice.size, TextOf(json, "size"));
  }
  if (const auto set = json.find("set"); set != json.end()) {
    if (!set->is_object()) return UsageError("'set' is an object of texts");
    for (const auto& [name, value] : set->items()) {
      ASSAY_ASSIGN_OR_RETURN(choice.set[name], TextOf(*set, name.c_str()));
    }
  }
  choice.gradients = terms_.gradients;
  if (const auto grad = json.find("grad"); grad != json.end()) {
    if (!grad->is_boolean()) return UsageError("'grad' is true or false");
    choice.gradients = grad->get<bool>();
  }
  Episode episode;
  ASSAY_ASSIGN_OR_RETURN(episode.task, TaskOf(choice, stop));
  ASSAY_ASSIGN_OR_RETURN(const BuiltPrompt prompt, Observe(episode));
  Json event = EventOf(id, "episode");
  const auto task = episode.task;
  event["problem"] = ProblemOf(task->problem);
  ASSAY_ASSIGN_OR_RETURN(event["episode"], Add(std::move(episode)));
  Record("reset", event["episode"], *task,
         {{"problem", event["problem"]}, {"seed", fmt::format("{}", seed)}});
  event["turn"] = 0;
  event["done"] = false;
  event["messages"] = MessagesOf(prompt);
  return Dump(event);
}

Result<Environment::Episodes::Stepping> Environment::Episodes::Begin(const Json& json) {
  Stepping step;
  ASSAY_ASSIGN_OR_RETURN(step.id, TextOf(json, "episode"));
  ASSAY_ASSIGN_OR_RETURN(const std::string text, TextOf(json, "text"));
  ASSAY_ASSIGN_OR_RETURN(step.episode, Find(step.id));
  step.answer = text;
  if (step.episode->turns >= terms_.turns)
    return UsageError(fmt::format("episode '{}' is done: reset another", step.id));
  const FormFacts& form = FormOf(terms_.form);
  const std::string parent = step.episode->last ? step.episode->last->source : std::string();
  const auto code = CodeOfAnswer(text, form.form, parent);
  if (!code) {
    step.trouble = code.error();
    return step;
  }
  auto source = CandidateFromText(std::string(form.file), code->source);
  if (source)
    step.source = std::move(*source);
  else
    step.trouble = source.error().message;
  return step;
}

Result<std::string> Environment::Episodes::Step(const Json& json, const std::string& id,
                                                StopToken stop) {
  const bool many = json.contains("steps");
  ASSAY_RETURN_IF_ERROR(
      CheckFields(json, many ? std::vector<std::string>{"id", "request", "steps"}
                             : std::vector<std::string>{"id", "request", "episode", "text"}));
  if (many && (!json["steps"].is_array() || json["steps"].size() > kStepsMax))
    return UsageError(fmt::format("'steps' is a list of at most {} steps", kStepsMax));
  // All are looked at before any is judged.
  std::vector<Stepping> steps;
  for (const Json& each : many ? json["steps"] : Json::array({json})) {
    if (!each.is_object()) return UsageError("a step is an object with 'episode' and 'text'");
    if (many) ASSAY_RETURN_IF_ERROR(CheckFields(each, {"episode", "text"}));
    ASSAY_ASSIGN_OR_RETURN(Stepping step, Begin(each));
    if (std::ranges::any_of(steps, [&](const Stepping& other) { return other.id == step.id; }))
      return UsageError(fmt::format("episode '{}' stands twice in one batch", step.id));
    steps.push_back(std::move(step));
  }
  JudgeAll(&steps, stop);
  Json settled = Json::array();
  for (Stepping& step : steps) {
    ASSAY_ASSIGN_OR_RETURN(Json part, Settle(&step));
    settled.push_back(std::move(part));
  }
  Json event = EventOf(id, many ? "steps" : "step");
  if (many)
    event["steps"] = std::move(settled);
  else
    event.update(settled.front());
  return Dump(event);
}

Result<std::string> Environment::Episodes::Fork(const Json& json, const std::string& id) {
  ASSAY_RETURN_IF_ERROR(CheckFields(json, {"id", "request", "episode"}));
  ASSAY_ASSIGN_OR_RETURN(const std::string from, TextOf(json, "episode"));
  ASSAY_ASSIGN_OR_RETURN(const Episode* episode, Find(from));
  ASSAY_ASSIGN_OR_RETURN(const BuiltPrompt prompt, Observe(*episode));
  Json event = EventOf(id, "episode");
  event["problem"] = ProblemOf(episode->task->problem);
  event["turn"] = episode->turns;
  event["done"] = episode->turns >= terms_.turns;
  event["messages"] = MessagesOf(prompt);
  ASSAY_ASSIGN_OR_RETURN(event["episode"], Add(*episode));
  Record("fork", event["episode"], *Find(from).value()->task, {{"from", from}});
  return Dump(event);
}

Result<std::string> Environment::Episodes::Serve(const std::string& line, std::string* id,
                                                 StopToken stop) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return UsageError("a request is a JSON object on one line");
  // Without a text of its own a client cannot tell which event answers it.
  if (json.contains("id")) {
    ASSAY_ASSIGN_OR_RETURN(*id, TextOf(json, "id"));
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string request, TextOf(json, "request"));
  if (request == "reset") return Reset(json, *id, stop);
  if (request == "step") return Step(json, *id, stop);
  if (request == "fork") return Fork(json, *id);
  if (request == "close") {
    ASSAY_RETURN_IF_ERROR(CheckFields(json, {"id", "request", "episode"}));
    ASSAY_ASSIGN_OR_RETURN(const std::string episode, TextOf(json, "episode"));
    ASSAY_ASSIGN_OR_RETURN(const Episode* closed, Find(episode));
    Record("close", episode, *closed->task, Json::object());
    open_.erase(episode);
    Json event = EventOf(*id, "closed");
    event["episode"] = episode;
    return Dump(event);
  }
  if (request == "shutdown") {
    ended_ = true;
    return Dump(EventOf(*id, "ended"));
  }
  const std::vector<std::string> known{"reset", "step", "fork", "close", "shutdown"};
  return UsageError(fmt::format("there is no request '{}'{}", request, Suggestion(request, known)));
}

Environment::Environment(EnvironmentParts parts, EnvironmentTerms terms)
    : episodes_(std::make_unique<Episodes>(std::move(parts), std::move(terms))) {}
Environment::~Environment() = default;
std::string Environment::Ready() const { return episodes_->Ready(); }
std::string Environment::Handle(const std::string& line, StopToken stop) {
  return episodes_->Handle(line, stop);
}
bool Environment::ended() const { return episodes_->ended(); }

}  // namespace assay
