#include "queue/spool_queue.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kBytesMax = size_t{64} << 20;
constexpr int64_t kLookAgainNs = 1'000'000'000;
constexpr int kPollMs = 200;
constexpr size_t kDoingShown = 4;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

Json ReadObject(const fs::path& path) {
  const auto text = ReadFile(path, kBytesMax);
  Json json = text ? Json::parse(*text, nullptr, false) : Json::object();
  return json.is_object() ? json : Json::object();
}

const char* StateName(WorkState state) {
  return state == WorkState::kJudged   ? "judged"
         : state == WorkState::kFailed ? "failed"
                                       : "cancelled";
}

WorkState StateOf(const std::string& name) {
  return name == "judged"   ? WorkState::kJudged
         : name == "failed" ? WorkState::kFailed
                            : WorkState::kCancelled;
}

// Orders works of one priority: by the wall clock in microseconds, as far as machines agree.
int64_t PlaceNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count() * 1000;
}

}  // namespace

Result<std::unique_ptr<SpoolQueue>> SpoolQueue::Open(const std::string& place, QueueTerms terms,
                                                     std::function<int64_t()> now_ns) {
  ASSAY_ASSIGN_OR_RETURN(SpoolFiles files, SpoolFiles::Open(place));
  return std::unique_ptr<SpoolQueue>(new SpoolQueue(std::move(files), terms, std::move(now_ns)));
}

// The work's file names its token; the token is made until added/ says that it was. So a process
// that ends between the two leaves the rest to the next one.
Result<bool> SpoolQueue::AddOne(const NewWork& work, int64_t place) {
  const std::string run = SpoolRunId(work.run);
  const std::string name = fmt::format("{}/{}", run, SpoolWorkId(work.run, work.key));
  const fs::path added = files_.Path("added", name), path = files_.Path("works", name);
  if (SpoolFiles::Has(added)) return false;
  SpoolToken token;
  token.stem = SpoolStem(work, place);
  const Json json = {
      {"run", work.run}, {"key", work.key}, {"token", token.stem}, {"request", work.request}};
  ASSAY_ASSIGN_OR_RETURN(const bool is_new, files_.Make(path, Dump(json), Durability::kLasting));
  if (!is_new) token.stem = TextOf(ReadObject(path), "token");
  if (!ParseSpoolToken(token.FileName()))
    return EnvironmentError(fmt::format("{} is damaged: remove it", path.string()));
  ASSAY_RETURN_IF_ERROR(
      files_.Make(files_.Path("todo", token.FileName()), "", Durability::kLasting));
  ASSAY_RETURN_IF_ERROR(files_.Make(added, "", Durability::kFleeting));
  return is_new;
}

Result<int64_t> SpoolQueue::Add(std::span<const NewWork> works) {
  int64_t place = PlaceNow(), added = 0;
  for (const NewWork& work : works) {
    ASSAY_ASSIGN_OR_RETURN(const bool is_new, AddOne(work, place++));
    added += is_new ? 1 : 0;
  }
  looked_ns_ = 0;
  return added;
}

std::vector<SpoolToken> SpoolQueue::Tokens(const char* kind) const {
  std::vector<SpoolToken> tokens;
  for (const std::string& name : SpoolFiles::Names(files_.Path(kind, "")))
    if (auto token = ParseSpoolToken(name)) tokens.push_back(std::move(*token));
  return tokens;
}

fs::path SpoolQueue::EndPath(const SpoolToken& token) const {
  return files_.Path("ends", token.run() + "/" + token.work());
}

bool SpoolQueue::HasEnded(const SpoolToken& token) const { return SpoolFiles::Has(EndPath(token)); }

bool SpoolQueue::WasForgotten(const SpoolToken& token) const {
  const std::string name = token.run() + "/" + token.work();
  return !SpoolFiles::Has(files_.Path("added", name)) &&
         !SpoolFiles::Has(files_.Path("works", name));
}

void SpoolQueue::Look(const std::string& device) {
  const int64_t now_ns = now_ns_();
  const bool is_fresh =
      looked_ns_ != 0 && now_ns - looked_ns_ < kLookAgainNs && device == looked_for_;
  if (is_fresh && !waiting_.empty()) return;
  looked_ns_ = now_ns;
  looked_for_ = device;
  waiting_ = Tokens("todo");
  std::erase_if(waiting_, [&](const SpoolToken& token) { return token.device() != device; });
  claims_of_.clear();
  for (const SpoolToken& token : Tokens("claims")) ++claims_of_[token.run()];
}

size_t SpoolQueue::NextToken() const {
  size_t best = waiting_.size();
  int fewest = 0;
  std::set<std::string> runs;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (best < waiting_.size() && waiting_[i].priority() != waiting_[best].priority()) break;
    const std::string run = waiting_[i].run();
    if (!runs.insert(run).second) continue;
    const auto claims = claims_of_.find(run);
    const int count = claims == claims_of_.end() ? 0 : claims->second;
    if (best < waiting_.size() && count >= fewest) continue;
    best = i;
    fewest = count;
  }
  return best;
}

Result<bool> SpoolQueue::Take(SpoolToken token, const std::string& worker,
                              std::vector<ClaimedWork>* claimed) {
  const fs::path from = files_.Path("todo", token.FileName());
  ++token.attempt;
  token.worker = worker;
  const fs::path to = files_.Path("claims", token.FileName());
  ASSAY_ASSIGN_OR_RETURN(const bool moved, SpoolFiles::Move(from, to));
  if (!moved) return false;
  if (HasEnded(token) || WasForgotten(token)) {
    SpoolFiles::Remove(to);
    return false;
  }
  const fs::path path = files_.Path("works", token.run() + "/" + token.work());
  const Json json = ReadObject(path);
  if (TextOf(json, "key").empty()) {
    (void)SpoolFiles::Move(to, from);
    return EnvironmentError(fmt::format("cannot read {}: it is missing or damaged", path.string()));
  }
  ++claims_of_[token.run()];
  held_[next_id_] = token;
  claimed->push_back({next_id_++, token.attempt, TextOf(json, "run"), TextOf(json, "key"),
                      TextOf(json, "request")});
  return true;
}

Result<std::vector<ClaimedWork>> SpoolQueue::Claim(const WorkerFacts& worker, int works_max) {
  std::vector<ClaimedWork> claimed;
  const std::string id = SpoolWorkerId(worker.name);
  if (!own_.contains(worker.name)) ASSAY_RETURN_IF_ERROR(WriteWorker(worker));
  if (SpoolFiles::Has(files_.Path("drained", id))) return claimed;
  Look(worker.device);
  std::optional<SpoolToken> first;
  while (std::ssize(claimed) < works_max) {
    const auto fits = [&](const SpoolToken& token) {
      return token.priority() == first->priority() && token.run() == first->run() &&
             token.group() == first->group();
    };
    const size_t next =
        !first ? NextToken()
               : static_cast<size_t>(std::ranges::find_if(waiting_, fits) - waiting_.begin());
    if (next == waiting_.size()) break;
    const SpoolToken token = waiting_[next];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
    ASSAY_ASSIGN_OR_RETURN(const bool taken, Take(token, id, &claimed));
    if (taken) first = token;
  }
  return claimed;
}

Result<void> SpoolQueue::WriteWorker(const WorkerFacts& worker) {
  OwnWorker& own = own_[worker.name];
  if (own.started_ns == 0) own.started_ns = now_ns_();
  const double seconds = static_cast<double>(now_ns_() - own.started_ns) / 1e9;
  const Json json = {
      {"name", worker.name},         {"node", worker.node},       {"device", worker.device},
      {"model", worker.model},       {"version", worker.version}, {"job", worker.job},
      {"measures", worker.measures}, {"judged", own.judged},      {"faults", own.faults},
      {"seconds", seconds},          {"beats", ++own.beats}};
  return WriteFileAtomically(files_.Path("workers", SpoolWorkerId(worker.name)), Dump(json),
                             Durability::kFleeting);
}

Result<std::vector<int64_t>> SpoolQueue::Beat(const WorkerFacts& worker,
                                              std::span<const ClaimedWork> held) {
  ASSAY_RETURN_IF_ERROR(WriteWorker(worker));
  std::vector<int64_t> lost;
  for (const ClaimedWork& work : held) {
    const auto token = held_.find(work.id);
    const bool has_token = token != held_.end();
    const fs::path path = has_token ? files_.Path("claims", token->second.FileName()) : fs::path();
    if (has_token && SpoolFiles::Has(path) && !HasEnded(token->second)) continue;
    lost.push_back(work.id);
    if (!has_token) continue;
    SpoolFiles::Remove(path);
    held_.erase(token);
  }
  return lost;
}

Result<bool> SpoolQueue::MakeEnd(const SpoolToken& token, WorkState state, const WorkEnd& end,
                                 const WorkerFacts& worker) const {
  const Json work = ReadObject(files_.Path("works", token.run() + "/" + token.work()));
  const Json json = {
      {"run", TextOf(work, "run")}, {"key", TextOf(work, "key")}, {"state", StateName(state)},
      {"verdict", end.verdict},     {"error", end.error},         {"attempts", token.attempt},
      {"worker", worker.name},      {"node", worker.node},        {"model", worker.model}};
  return files_.Make(EndPath(token), Dump(json), Durability::kLasting);
}

Result<bool> SpoolQueue::End(const WorkerFacts& worker, const ClaimedWork& work,
                             const WorkEnd& end) {
  const auto held = held_.find(work.id);
  if (held == held_.end()) return false;
  const SpoolToken token = held->second;
  OwnWorker& own = own_[worker.name];
  const fs::path claim = files_.Path("claims", token.FileName());
  const bool holds = SpoolFiles::Has(claim);
  if (end.again) {
    if (!holds || HasEnded(token)) return false;
    ASSAY_RETURN_IF_ERROR(TakeBack(token, end.error));
    ++own.faults;
    return true;
  }
  const bool is_judged = !end.verdict.empty();
  bool made = false;
  if (holds) {
    ASSAY_ASSIGN_OR_RETURN(
        made, MakeEnd(token, is_judged ? WorkState::kJudged : WorkState::kFailed, end, worker));
  }
  SpoolFiles::Remove(claim);
  if (made) ++(is_judged ? own.judged : own.faults);
  if (made) return true;
  const Json there = ReadObject(EndPath(token));
  return TextOf(there, "worker") == worker.name && NumberOf(there, "attempts") == token.attempt;
}

Result<void> SpoolQueue::GiveBack(const WorkerFacts&, std::span<const ClaimedWork> works) {
  for (const ClaimedWork& work : works) {
    const auto held = held_.find(work.id);
    if (held == held_.end()) continue;
    SpoolToken token = held->second;
    const fs::path claim = files_.Path("claims", token.FileName());
    token.worker.clear();
    ASSAY_RETURN_IF_ERROR(SpoolFiles::Move(claim, files_.Path("todo", token.FileName())));
    held_.erase(held);
  }
  looked_ns_ = 0;
  return {};
}

Result<void> SpoolQueue::TakeBack(const SpoolToken& claim, const std::string& error) {
  const fs::path from = files_.Path("claims", claim.FileName());
  SpoolToken token = claim;
  token.worker.clear();
  ++token.failures;
  if (token.failures < terms_.attempts_max) {
    ASSAY_RETURN_IF_ERROR(SpoolFiles::Move(from, files_.Path("todo", token.FileName())));
    looked_ns_ = 0;
    return {};
  }
  WorkerFacts worker;
  const Json json = ReadObject(files_.Path("workers", claim.worker));
  worker.name = TextOf(json, "name");
  worker.node = TextOf(json, "node");
  worker.model = TextOf(json, "model");
  ASSAY_RETURN_IF_ERROR(MakeEnd(token, WorkState::kFailed, {"", error}, worker));
  SpoolFiles::Remove(from);
  return {};
}

double SpoolQueue::SilenceOf(const std::string& worker_id) {
  const auto content = ReadFile(files_.Path("workers", worker_id), kBytesMax);
  Seen& seen = seen_[worker_id];
  if (seen.changed_ns == 0 || (content && *content != seen.content)) {
    seen.changed_ns = now_ns_();
    if (content) seen.content = *content;
  }
  return static_cast<double>(now_ns_() - seen.changed_ns) / 1e9;
}

Result<int64_t> SpoolQueue::Expire() {
  int64_t expired = 0;
  std::map<std::string, double> silence;
  for (const std::string& id : SpoolFiles::Names(files_.Path("workers", "")))
    silence[id] = SilenceOf(id);
  for (const SpoolToken& token : Tokens("claims")) {
    if (HasEnded(token)) continue;
    if (!silence.contains(token.worker)) silence[token.worker] = SilenceOf(token.worker);
    if (silence[token.worker] < terms_.lease_s) continue;
    const std::string node = TextOf(ReadObject(files_.Path("workers", token.worker)), "node");
    const Json error = {
        {"kind", "environment"},
        {"message", fmt::format("{} workers fell silent over it, the last on {}: see its log",
                                token.failures + 1, node.empty() ? "an unknown node" : node)}};
    ASSAY_RETURN_IF_ERROR(TakeBack(token, Dump(error)));
    ++expired;
  }
  return expired;
}

void SpoolQueue::LookAtEnds(const std::string& run_id) {
  Ends& ends = ends_[run_id];
  for (const std::string& name : SpoolFiles::Names(files_.Path("ends", run_id))) {
    if (ends.known.contains(name)) continue;
    const Json json = ReadObject(files_.Path("ends", run_id + "/" + name));
    if (TextOf(json, "key").empty()) continue;  // not whole yet on this machine
    ends.known[name] = true;
    EndedWork ended;
    ended.sequence = std::ssize(ends.found) + 1;
    ended.run = TextOf(json, "run");
    ended.key = TextOf(json, "key");
    ended.state = StateOf(TextOf(json, "state"));
    ended.end = {TextOf(json, "verdict"), TextOf(json, "error")};
    ended.attempts = static_cast<int>(NumberOf(json, "attempts"));
    ended.worker = TextOf(json, "worker");
    ended.node = TextOf(json, "node");
    ended.model = TextOf(json, "model");
    ends.found.push_back(std::move(ended));
  }
}

Result<std::vector<EndedWork>> SpoolQueue::Ended(const std::string& run, int64_t after,
                                                 int64_t limit) {
  const std::string id = SpoolRunId(run);
  LookAtEnds(id);
  const std::vector<EndedWork>& found = ends_[id].found;
  const int64_t begin = std::clamp<int64_t>(after, 0, std::ssize(found));
  const int64_t end = std::min<int64_t>(std::ssize(found), begin + std::max<int64_t>(limit, 0));
  return std::vector<EndedWork>(found.begin() + begin, found.begin() + end);
}

Result<int64_t> SpoolQueue::ReadFrom(const std::string& run, std::span<const std::string> keys) {
  const std::string id = SpoolRunId(run);
  LookAtEnds(id);
  const std::set<std::string_view> wanted(keys.begin(), keys.end());
  const std::vector<EndedWork>& found = ends_[id].found;
  return std::ranges::find_if(found,
                              [&](const EndedWork& ended) { return wanted.contains(ended.key); }) -
         found.begin();
}

Result<void> SpoolQueue::Wait(int timeout_ms) {
  // A shared file system tells nobody of changes.
  ::poll(nullptr, 0, std::min(timeout_ms, kPollMs));
  return {};
}

Result<QueueCounts> SpoolQueue::Counts(const std::string& run) {
  QueueCounts counts;
  const std::string id = run.empty() ? "" : SpoolRunId(run);
  const auto counted = [&](const SpoolToken& token) {
    return (id.empty() || token.run() == id) && !HasEnded(token);
  };
  counts.queued = std::ranges::count_if(Tokens("todo"), counted);
  counts.claimed = std::ranges::count_if(Tokens("claims"), counted);
  const std::vector<std::string> runs =
      id.empty() ? SpoolFiles::Names(files_.Path("ends", "")) : std::vector<std::string>{id};
  for (const std::string& each : runs) {
    LookAtEnds(each);
    for (const EndedWork& ended : ends_[each].found) {
      if (ended.state == WorkState::kJudged) ++counts.judged;
      if (ended.state == WorkState::kFailed) ++counts.failed;
      if (ended.state == WorkState::kCancelled) ++counts.cancelled;
    }
  }
  return counts;
}

Result<void> SpoolQueue::Cancel(const std::string& run) {
  const std::string id = SpoolRunId(run);
  for (const char* kind : {"todo", "claims"}) {
    for (const SpoolToken& token : Tokens(kind)) {
      if (token.run() != id) continue;
      ASSAY_RETURN_IF_ERROR(MakeEnd(token, WorkState::kCancelled, {}, {}));
      if (token.worker.empty()) SpoolFiles::Remove(files_.Path(kind, token.FileName()));
    }
  }
  return {};
}

// A token that a worker moves meanwhile means nothing: HasEnded says so until the ends go, which is
// last, and WasForgotten from then on.
void SpoolQueue::Forget(const std::string& run) {
  const std::string id = SpoolRunId(run);
  ends_.erase(id);
  for (const char* kind : {"todo", "claims"})
    for (const SpoolToken& token : Tokens(kind))
      if (token.run() == id) SpoolFiles::Remove(files_.Path(kind, token.FileName()));
  for (const char* kind : {"works", "added", "ends"}) {
    std::error_code ignored;
    fs::remove_all(files_.Path(kind, id), ignored);
  }
}

Result<std::vector<KnownWorker>> SpoolQueue::Workers() {
  std::map<std::string, std::vector<SpoolToken>> claims;
  for (const SpoolToken& token : Tokens("claims"))
    if (!HasEnded(token)) claims[token.worker].push_back(token);
  std::vector<KnownWorker> workers;
  for (const std::string& id : SpoolFiles::Names(files_.Path("workers", ""))) {
    const Json json = ReadObject(files_.Path("workers", id));
    KnownWorker known;
    known.facts = {TextOf(json, "name"),    TextOf(json, "node"),    TextOf(json, "device"),
                   TextOf(json, "model"),   TextOf(json, "version"), TextOf(json, "job"),
                   TextOf(json, "measures")};
    if (known.facts.name.empty()) continue;
    known.silent_s = std::max(SilenceOf(id), files_.AgeOf(files_.Path("workers", id)));
    known.judged = NumberOf(json, "judged");
    known.faults = NumberOf(json, "faults");
    const auto seconds = json.find("seconds");
    if (seconds != json.end() && seconds->is_number() && seconds->get<double>() > 0)
      known.judged_an_hour = static_cast<double>(known.judged) * 3600 / seconds->get<double>();
    const std::vector<SpoolToken>& of = claims[id];
    for (size_t i = 0; i < std::min(of.size(), kDoingShown); ++i)
      known.doing +=
          (i == 0 ? "" : " ") +
          TextOf(ReadObject(files_.Path("works", of[i].run() + "/" + of[i].work())), "key");
    if (const auto why = ReadFile(files_.Path("drained", id), kBytesMax)) known.drained = *why;
    workers.push_back(std::move(known));
  }
  return workers;
}

Result<void> SpoolQueue::Drain(const std::string& worker, const std::string& why) {
  const fs::path path = files_.Path("drained", SpoolWorkerId(worker));
  if (!why.empty()) return WriteFileAtomically(path, why, Durability::kLasting);
  SpoolFiles::Remove(path);
  return {};
}

}  // namespace assay
