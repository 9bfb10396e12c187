// A server of the Model Context Protocol: lines of a client in, lines to it out. Serves revisions
// from 2024-11-05 to 2025-11-25, after an `initialize`, and 2026-07-28, whose requests each say all
// (docs/mcp.md).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/desk.h"
#include "mcp/json_rpc.h"

namespace assay {

// A revision that begins with an `initialize`, and what its messages have.
struct McpRevision {
  std::string_view name;
  bool structured = true;   // titles, results as structured content with a schema
  bool annotations = true;  // of tools
  bool progress_text = true;
  bool batches = false;  // several messages in an array
};

class McpServer {
 public:
  // `say` writes a line. The desk must outlive this object.
  McpServer(Desk& desk, std::function<int64_t()> now_ns,
            std::function<void(const std::string& line)> say);

  void Take(const std::string& line);
  void TakeTooLong();
  // Moves jobs on, tells progress, and answers calls whose wait is over.
  void Tick();
  // The client is gone: cancels all that it asked for.
  void End();
  // Something is in hand: Tick() is due several times a second.
  bool busy() { return !waiting_.empty() || desk_.jobs().busy(); }

 private:
  struct Waiting {
    McpJson id;
    bool stateless = false;
    ToolWait wait;
    int64_t end_ns = 0;
    McpJson progress_token;  // null: progress is not told
    std::string told;        // the newest event that was told
    int64_t steps = 0;
  };

  // Requests that came in one array: their answers go out in one.
  struct Batch {
    std::vector<McpJson> awaited;  // ids
    std::vector<std::string> answers;
  };

  void TakeBatch(McpJson& parts);
  void Serve(const RpcMessage& message);
  void ServeStateless(const RpcMessage& message);
  void ServeStateful(const RpcMessage& message);
  void Call(const RpcMessage& message, bool stateless);
  void Cancel(const McpJson& id);
  void Answer(const McpJson& id, bool stateless, McpJson result);
  void AnswerCall(const McpJson& id, bool stateless, const ToolReply& reply);
  void TellProgress(const McpJob& job, Waiting* waiting);
  McpJson ToolsOfRevision() const;
  // Says the answer to a request, or keeps it until its batch is answered.
  void Say(const McpJson& id, const std::string& line);
  void Refuse(const RpcMessage& message, int code, const std::string& why,
              const McpJson& data = nullptr);
  void SayFinishedBatches();

  Desk& desk_;
  const std::function<int64_t()> now_ns_;
  const std::function<void(const std::string&)> say_;
  const McpRevision* revision_;  // that the client's `initialize` agreed on
  std::vector<Waiting> waiting_;
  std::vector<Batch> batches_;
};

}  // namespace assay
