// What a hostile peer can put into the judge's socket: messages of any length and content, with any
// number of descriptors. An input is a list of messages: [flags] [length] bytes...
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/unique_fd.h"
#include "wire/channel.h"

namespace assay::wire {
namespace {

constexpr size_t kDescriptorsMax = 15;

int NextDescriptor() {
  const UniqueFd fd(dup(STDERR_FILENO));
  return fd.get();
}

bool Send(int socket, const uint8_t* data, size_t size, size_t descriptors) {
  iovec bytes{const_cast<uint8_t*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    const int sent = STDERR_FILENO;
    for (size_t i = 0; i < descriptors; ++i)
      std::memcpy(CMSG_DATA(header) + i * sizeof sent, &sent, sizeof sent);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

void ReceiveOne(int socket, const uint8_t* data, size_t size, bool wants_descriptor,
                bool sent_descriptors) {
  const int next = NextDescriptor();
  Frame frame{};
  int fd = -1;
  pid_t sender = 0;
  const Receive received =
      ReceiveFrame(socket, &frame, 0, wants_descriptor ? &fd : nullptr, &sender);
  ASSAY_CHECK((fd >= 0) == (wants_descriptor && sent_descriptors));
  if (fd >= 0) close(fd);
  ASSAY_CHECK(NextDescriptor() == next);  // none stays open
  uint32_t magic = 0;
  std::memcpy(&magic, data, std::min(size, sizeof magic));
  const bool is_frame = size == sizeof(Frame) && magic == kMagic;
  if (size == 0) {
    // A message of no bytes looks like the end of the stream; it is never taken for a frame.
    ASSAY_CHECK(received == Receive::kClosed);
    return;
  }
  ASSAY_CHECK(received == (is_frame ? Receive::kFrame : Receive::kMalformed));
  if (is_frame) ASSAY_CHECK(std::memcmp(&frame, data, size) == 0 && sender == getpid());
}

}  // namespace
}  // namespace assay::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  int pair[2];
  ASSAY_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  const UniqueFd judge(pair[0]), host(pair[1]);
  const int on = 1;
  ASSAY_CHECK(setsockopt(judge.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  for (size_t at = 0; at + 2 <= size;) {
    const size_t descriptors = data[at] & 15;
    const bool wants_descriptor = (data[at] & 16) != 0;
    const size_t length = std::min<size_t>(data[at + 1], size - at - 2);
    const uint8_t* message = data + at + 2;
    at += 2 + length;
    ASSAY_CHECK(wire::Send(host.get(), message, length, descriptors));
    // Without bytes the kernel delivers no descriptors; the next message would tell them apart.
    if (length == 0 && descriptors > 0) return 0;
    wire::ReceiveOne(judge.get(), message, length, wants_descriptor, descriptors > 0);
  }
  return 0;
}
