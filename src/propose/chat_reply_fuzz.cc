// Any bytes as a service's reply, in both protocols, streamed and not: an answer, or the trouble.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "propose/chat_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& protocol : {assay::OpenAiProtocol(), assay::AnthropicProtocol()})
    for (const bool is_stream : {false, true}) {
      const assay::ChatReply reply = protocol->Read(text, is_stream);
      ASSAY_CHECK(reply.answer.usage.tokens_in >= 0 && reply.answer.usage.tokens_out >= 0);
      ASSAY_CHECK(reply.kind != assay::ChatReply::Kind::kBroken || !reply.trouble.empty());
    }
  return 0;
}
