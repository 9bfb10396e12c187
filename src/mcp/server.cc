#include "mcp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "worker_client/event.h"

namespace assay {
namespace {

constexpr const char* kStateful = "2025-11-25";
constexpr const char* kStateless = "2026-07-28";
// Earlier revisions whose messages, as far as they are used here, are the same.
constexpr const char* kAlsoStateful[] = {"2025-06-18"};
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";
constexpr int kListTtlMs = 3'600'000;
constexpr size_t kWaitingMax = 256;

constexpr const char* kInstructions =
    "Assay judges compute kernels: is a candidate correct, is it faster than PyTorch, by how much, "
    "how sure is that? problem_list names problems, problem_get says what to write. Send the whole "
    "source to kernel_check until it is correct, then to kernel_judge, and ask job_status for its "
    "handle. Each answer ends with a good next call. Nothing that a candidate says about itself "
    "counts: candidates run in a sandbox, on values they have not seen. Calls that judge, and "
    "their "
    "seconds, are counted against a budget.";

McpJson ServerFacts() {
  return {{"name", "assay"}, {"title", "Assay"}, {"version", kAssayVersion}};
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
    : desk_(desk), now_ns_(std::move(now_ns)), say_(std::move(say)) {}

void McpServer::Take(const std::string& line) {
  auto parsed = ParseRpc(line);
  if (const auto* refusal = std::get_if<std::string>(&parsed)) return say_(*refusal);
  Serve(std::get<RpcMessage>(parsed));
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
    return say_(RpcErrorLine(
        *message.id, kRpcUnsupportedVersion, "this revision is not served",
        {{"supported", {kStateless}},
         {"requested", meta[kVersionKey].is_string() ? meta[kVersionKey] : McpJson("")}}));
  if (!meta.contains(kCapabilitiesKey) || !meta[kCapabilitiesKey].is_object())
    return say_(RpcErrorLine(*message.id, kRpcInvalidParams,
                             fmt::format("_meta needs {}: an object", kCapabilitiesKey)));
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
  say_(RpcErrorLine(*message.id, kRpcMethodNotFound,
                    "use server/discover, tools/list or tools/call"));
}

void McpServer::ServeStateful(const RpcMessage& message) {
  if (message.method == "initialize") {
    const auto asked = message.params.find("protocolVersion");
    if (asked == message.params.end() || !asked->is_string())
      return say_(RpcErrorLine(*message.id, kRpcInvalidParams, "'protocolVersion' is missing"));
    const bool known = std::ranges::find(kAlsoStateful, *asked) != std::end(kAlsoStateful);
    return Answer(*message.id, false,
                  {{"protocolVersion", known ? *asked : McpJson(kStateful)},
                   {"capabilities", Capabilities()},
                   {"serverInfo", ServerFacts()},
                   {"instructions", kInstructions}});
  }
  if (message.method == "ping") return Answer(*message.id, false, McpJson::object());
  if (message.method == "tools/list")
    return Answer(*message.id, false, {{"tools", desk_.list().tools()}});
  if (message.method == "tools/call") return Call(message, false);
  say_(RpcErrorLine(
      *message.id, kRpcMethodNotFound,
      message.method == "server/discover"
          ? fmt::format("server/discover needs _meta with {}: \"{}\"", kVersionKey, kStateless)
          : "use initialize, ping, tools/list or tools/call"));
}

void McpServer::Call(const RpcMessage& message, bool stateless) {
  const auto name = message.params.find("name");
  const auto arguments = message.params.find("arguments");
  if (name == message.params.end() || !name->is_string())
    return say_(RpcErrorLine(*message.id, kRpcInvalidParams, "'name' of the tool is missing"));
  if (arguments != message.params.end() && !arguments->is_object())
    return say_(RpcErrorLine(*message.id, kRpcInvalidParams, "'arguments' must be an object"));
  if (desk_.list().Find(*name) == nullptr) {
    std::string known;
    for (const std::string& each : desk_.list().Names()) known += " " + each;
    return say_(RpcErrorLine(*message.id, kRpcInvalidParams,
                             fmt::format("there is no such tool; there are:{}", known)));
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
}

void McpServer::TellProgress(const McpJob& job, Waiting* waiting) {
  if (waiting->progress_token.is_null() || job.event == waiting->told) return;
  waiting->told = job.event;
  const auto event = ParseWorkerEvent(job.event);
  if (!event) return;
  say_(RpcNotificationLine("notifications/progress", {{"progressToken", waiting->progress_token},
                                                      {"progress", ++waiting->steps},
                                                      {"message", event->text}}));
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
  if (!reply.structured.is_null()) result["structuredContent"] = reply.structured;
  if (reply.is_error) result["isError"] = true;
  Answer(id, stateless, std::move(result));
}

void McpServer::Answer(const McpJson& id, bool stateless, McpJson result) {
  if (stateless) {
    result["resultType"] = "complete";
    result["_meta"][kServerKey] = ServerFacts();
  }
  say_(RpcResultLine(id, std::move(result)));
}

}  // namespace assay
