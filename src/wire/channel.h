// Frames over one end of a SOCK_SEQPACKET socketpair. libc only.
#pragma once

#include <sys/types.h>

#include "wire/types.h"

namespace assay::wire {

// Sends one frame, with a descriptor beside it if fd >= 0. Returns false if the peer is gone; never
// raises SIGPIPE.
bool SendFrame(int socket, const Frame& frame, int fd = -1);

enum class Receive { kFrame, kClosed, kTimeout, kMalformed };

// Waits up to timeout_ms (-1: without end) for one frame. Anything but one whole frame with the
// right magic is kMalformed. *fd is the first descriptor that came along (else -1), and the
// caller's; all others are closed, the first too if fd is null. If SO_PASSCRED is set on the
// socket, *sender is the peer's process id as this process sees it, vouched for by the kernel.
Receive ReceiveFrame(int socket, Frame* frame, int timeout_ms, int* fd = nullptr,
                     pid_t* sender = nullptr);

}  // namespace assay::wire
