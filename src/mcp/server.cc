#include "mcp/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "worker_client/event.h"

namespace assay {
namespace {

constexpr const char* kStateless = "2026-07-28";
// Those that begin with an `initialize`, the newest first.
constexpr McpRevision kStateful[] = {
    {.name = "2025-11-25"},
    {.name = "2025-06-18"},
    {.name = "2025-03-26", .structured = false, .batches = true},
    {.name = "2024-11-05", .structured = false, .annotations = false, .progress_text = false},
};
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";
constexpr int kListTtlMs = 3'600'000;
constexpr size_t kWaitingMax = 256, kBatchMax = 256;

constexpr const char* kInstructions =
    "Assay judges compute kernels: is a candidate correct, is it faster than PyTorch, by how much, "
    "how sure is that? problem_list names problems, problem_get says what to write. Send the whole "
    "source to kernel_check until it is correct, then to kernel_judge, and ask job_status for its "
    "handle. Each answer ends with a good next call. Nothing that a candidate says about itself "
    "counts: candidates run in a sandbox, on values they have not seen. Calls that judge, and "
    "their "
    "seconds, are counted against a budget.";

McpJson ServerFacts(bool titled) {
  McpJson facts = {{"name", "assay"}, {"version", kAssayVersion}};
  if (titled) facts["title"] = "Assay";
  return facts;
}
McpJson Capabilities() { return {{"tools", McpJson::object()}}; }

// The _meta of a request; null: it has none.
const McpJson& MetaOf(const RpcMessage& message) {
  static const McpJson none;
  const auto meta = message.params.find("_meta");
  return meta != message.params.end() && meta->is_object() ? *meta : none;
}

}  // namespace

McpServer::McpServer(Desk& desk, std::function<int64_t()> now_ns,
                     std::function<void(const std::string&)> say)
    : desk_(desk), now_ns_(std::move(now_ns)), say_(std::move(say)), revision_(kStateful) {}

void McpServer::Take(const std::string& line) {
  McpJson json = McpJson::parse(line, nullptr, false);
  if (json.is_array() && revision_->batches) return TakeBatch(json);
  auto parsed = ParseRpc(std::move(json));
  if (const auto* refusal = std::get_if<std::string>(&parsed)) return say_(*refusal);
  Serve(std::get<RpcMessage>(parsed));
}

void McpServer::TakeBatch(McpJson& parts) {
  if (parts.empty() || parts.size() > kBatchMax)
    return say_(RpcErrorLine(nullptr, kRpcInvalidRequest,
                             fmt::format("a batch has 1 to {} messages", kBatchMax)));
  Batch batch;
  std::vector<RpcMessage> messages;
  for (McpJson& part : parts) {
    auto parsed = ParseRpc(std::move(part));
    if (auto* refusal = std::get_if<std::string>(&parsed)) {
      batch.answers.push_back(std::move(*refusal));
      continue;
    }
    messages.push_back(std::move(std::get<RpcMessage>(parsed)));
    if (messages.back().id) batch.awaited.push_back(*messages.back().id);
  }
  batches_.push_back(std::move(batch));
  for (const RpcMessage& message : messages) {
    if (message.method == "initialize" && message.id)
      Refuse(message, kRpcInvalidRequest, "initialize is no part of a batch: send it alone");
    else
      Serve(message);
  }
  SayFinishedBatches();
}

void McpServer::Say(const McpJson& id, const std::string& line) {
  for (Batch& batch : batches_) {
    const auto found = std::ranges::find(batch.awaited, id);
    if (found == batch.awaited.end()) continue;
    batch.awaited.erase(found);
    batch.answers.push_back(line);
    return SayFinishedBatches();
  }
  say_(line);
}

void McpServer::Refuse(const RpcMessage& message, int code, const std::string& why,
                       const McpJson& data) {
  Say(*message.id, RpcErrorLine(*message.id, code, why, data));
}

void McpServer::SayFinishedBatches() {
  std::erase_if(batches_, [&](const Batch& batch) {
    if (!batch.awaited.empty()) return false;
    if (!batch.answers.empty()) say_(fmt::format("[{}]", fmt::join(batch.answers, ",")));
    return true;
  });
}

void McpServer::TakeTooLong() {
  say_(RpcErrorLine(nullptr, kRpcInvalidRequest,
                    "the line is too long, and was skipped: a message has at most 8 MiB, a source "
                    "1 MiB"));
}

void McpServer::Serve(const RpcMessage& message) {
  if (!message.id) {
    if (message.method == "notifications/cancelled" && message.params.contains("requestId"))
      Cancel(message.params["requestId"]);
    return;
  }
  if (MetaOf(message).contains(kVersionKey)) return ServeStateless(message);
  ServeStateful(message);
}

void McpServer::ServeStateless(const RpcMessage& message) {
  const McpJson& meta = MetaOf(message);
  if (meta[kVersionKey] != kStateless)
    return Refuse(message, kRpcUnsupportedVersion, "this revision is not served",
                  {{"supported", {kStateless}},
                   {"requested", meta[kVersionKey].is_string() ? meta[kVersionKey] : McpJson("")}});
  if (!meta.contains(kCapabilitiesKey) || !meta[kCapabilitiesKey].is_object())
    return Refuse(message, kRpcInvalidParams,
                  fmt::format("_meta needs {}: an object", kCapabilitiesKey));
  if (message.method == "server/discover")
    return Answer(*message.id, true,
                  {{"supportedVersions", {kStateless}},
                   {"capabilities", Capabilities()},
                   {"instructions", kInstructions},
                   {"ttlMs", kListTtlMs},
                   {"cacheScope", "private"}});
  if (message.method == "tools/list")
    return Answer(
        *message.id, true,
        {{"tools", desk_.list().tools()}, {"ttlMs", kListTtlMs}, {"cacheScope", "private"}});
  if (message.method == "tools/call") return Call(message, true);
  Refuse(message, kRpcMethodNotFound, "use server/discover, tools/list or tools/call");
}

void McpServer::ServeStateful(const RpcMessage& message) {
  if (message.method == "initialize") {
    const auto asked = message.params.find("protocolVersion");
    if (asked == message.params.end() || !asked->is_string())
      return Refuse(message, kRpcInvalidParams, "'protocolVersion' is missing");
    const auto found = std::ranges::find(kStateful, asked->get<std::string>(), &McpRevision::name);
    revision_ = found == std::end(kStateful) ? kStateful : found;
    return Answer(*message.id, false,
                  {{"protocolVersion", revision_->name},
                   {"capabilities", Capabilities()},
                   {"serverInfo", ServerFacts(revision_->structured)},
                   {"instructions", kInstructions}});
  }
  if (message.method == "ping") return Answer(*message.id, false, McpJson::object());
  if (message.method == "tools/list")
    return Answer(*message.id, false, {{"tools", ToolsOfRevision()}});
  if (message.method == "tools/call") return Call(message, false);
  Refuse(message, kRpcMethodNotFound,
         message.method == "server/discover"
             ? fmt::format("server/discover needs _meta with {}: \"{}\"", kVersionKey, kStateless)
             : "use initialize, ping, tools/list or tools/call");
}

void McpServer::Call(const RpcMessage& message, bool stateless) {
  const auto name = message.params.find("name");
  const auto arguments = message.params.find("arguments");
  if (name == message.params.end() || !name->is_string())
    return Refuse(message, kRpcInvalidParams, "'name' of the tool is missing");
  if (arguments != message.params.end() && !arguments->is_object())
    return Refuse(message, kRpcInvalidParams, "'arguments' must be an object");
  if (desk_.list().Find(*name) == nullptr) {
    std::string known;
    for (const std::string& each : desk_.list().Names()) known += " " + each;
    return Refuse(message, kRpcInvalidParams,
                  fmt::format("there is no such tool; there are:{}", known));
  }
  if (waiting_.size() >= kWaitingMax)
    return AnswerCall(*message.id, stateless,
                      RefusedReply({ErrorKind::kUsage, "too many calls wait: take their answers"}));
  auto outcome =
      desk_.Call(*name, arguments == message.params.end() ? McpJson::object() : *arguments);
  if (const auto* reply = std::get_if<ToolReply>(&outcome))
    return AnswerCall(*message.id, stateless, *reply);
  Waiting waiting;
  waiting.id = *message.id;
  waiting.stateless = stateless;
  waiting.wait = std::move(std::get<ToolWait>(outcome));
  waiting.end_ns = now_ns_() + static_cast<int64_t>(waiting.wait.seconds * 1e9);
  const McpJson& meta = MetaOf(message);
  if (const auto token = meta.find("progressToken");
      token != meta.end() && (token->is_string() || token->is_number_integer()))
    waiting.progress_token = *token;
  waiting_.push_back(std::move(waiting));
  Tick();
}

void McpServer::Cancel(const McpJson& id) {
  const auto found =
      std::ranges::find_if(waiting_, [&](const Waiting& waiting) { return waiting.id == id; });
  if (found == waiting_.end()) return;  // answered already
  const ToolWait wait = std::move(found->wait);
  waiting_.erase(found);
  // Nobody has its handle.
  if (wait.owns) desk_.jobs().Cancel(wait.job);
  for (Batch& batch : batches_) std::erase(batch.awaited, id);
  SayFinishedBatches();
}

void McpServer::TellProgress(const McpJob& job, Waiting* waiting) {
  if (waiting->progress_token.is_null() || job.event == waiting->told) return;
  waiting->told = job.event;
  const auto event = ParseWorkerEvent(job.event);
  if (!event) return;
  McpJson told = {{"progressToken", waiting->progress_token}, {"progress", ++waiting->steps}};
  if (waiting->stateless || revision_->progress_text) told["message"] = event->text;
  say_(RpcNotificationLine("notifications/progress", std::move(told)));
}

void McpServer::Tick() {
  desk_.jobs().Tick();
  // Answers go out in the order of the calls.
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  for (Waiting& each : waiting) {
    const McpJob* job = desk_.jobs().Find(each.wait.job);
    if (job != nullptr && !job->ended() && now_ns_() < each.end_ns) {
      TellProgress(*job, &each);
      waiting_.push_back(std::move(each));
    } else if (job == nullptr) {
      AnswerCall(each.id, each.stateless,
                 RefusedReply({ErrorKind::kUsage, "the job is too old to be known"}));
    } else {
      AnswerCall(each.id, each.stateless, each.wait.answer(*job));
    }
  }
}

void McpServer::End() {
  waiting_.clear();
  desk_.jobs().End();
}

void McpServer::AnswerCall(const McpJson& id, bool stateless, const ToolReply& reply) {
  McpJson result = {{"content", {{{"type", "text"}, {"text", reply.text}}}}};
  if (!reply.structured.is_null() && (stateless || revision_->structured))
    result["structuredContent"] = reply.structured;
  if (reply.is_error) result["isError"] = true;
  Answer(id, stateless, std::move(result));
}

void McpServer::Answer(const McpJson& id, bool stateless, McpJson result) {
  if (stateless) {
    result["resultType"] = "complete";
    result["_meta"][kServerKey] = ServerFacts(true);
  }
  Say(id, RpcResultLine(id, std::move(result)));
}

McpJson McpServer::ToolsOfRevision() const {
  McpJson tools = desk_.list().tools();
  for (McpJson& tool : tools) {
    if (!revision_->structured)
      for (const char* key : {"title", "outputSchema"}) tool.erase(key);
    if (!revision_->annotations) tool.erase("annotations");
  }
  return tools;
}

}  // namespace assay
