#include "wire/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace assay::wire {

bool SendFrame(int socket, const Frame& frame, int fd) {
  iovec data{const_cast<Frame*>(&frame), sizeof frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t count;
  do {
    count = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof frame);
}

namespace {

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Waits until the socket has a message or was closed; false at the time-out.
bool AwaitReadable(int socket, int timeout_ms) {
  const int64_t end = NowMs() + timeout_ms;
  pollfd item{socket, POLLIN, 0};
  while (true) {
    const int left = timeout_ms < 0 ? -1 : static_cast<int>(end > NowMs() ? end - NowMs() : 0);
    const int count = poll(&item, 1, left);
    if (count > 0) return true;
    if (count == 0) return false;
    if (errno != EINTR) return true;  // the read says what is wrong
  }
}

// The first descriptor of a message goes to *fd; all others are closed. A sender may attach more
// than there is a use for, and each would stay open in this process.
void TakeDescriptors(const cmsghdr& header, int* fd) {
  const size_t count = (header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int received;
    memcpy(&received, CMSG_DATA(&header) + i * sizeof received, sizeof received);
    if (fd != nullptr && *fd < 0)
      *fd = received;
    else
      close(received);
  }
}

}  // namespace

Receive ReceiveFrame(int socket, Frame* frame, int timeout_ms, int* fd, pid_t* sender) {
  if (fd != nullptr) *fd = -1;
  if (sender != nullptr) *sender = 0;
  if (!AwaitReadable(socket, timeout_ms)) return Receive::kTimeout;
  iovec data{frame, sizeof *frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  do {
    count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return Receive::kClosed;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_RIGHTS) {
      TakeDescriptors(*header, fd);
    } else if (header->cmsg_type == SCM_CREDENTIALS && sender != nullptr) {
      ucred credentials;
      memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
      *sender = credentials.pid;
    }
  }
  const bool whole =
      count == static_cast<ssize_t>(sizeof *frame) && (message.msg_flags & MSG_TRUNC) == 0;
  return whole && frame->magic == kMagic ? Receive::kFrame : Receive::kMalformed;
}

}  // namespace assay::wire
