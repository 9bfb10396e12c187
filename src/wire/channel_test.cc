#include "wire/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace assay::wire {
namespace {

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    judge_ = pair[0];
    host_ = pair[1];
  }
  void TearDown() override {
    close(judge_);
    if (host_ >= 0) close(host_);
  }
  int judge_ = -1, host_ = -1;
};

TEST_F(ChannelTest, AFrameArrivesWithItsDescriptorAndItsSendersPid) {
  const int on = 1;
  ASSERT_EQ(setsockopt(judge_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  ASSERT_TRUE(SendFrame(host_, Frame{kMagic, FrameKind::kHello, {7, 8}}, STDERR_FILENO));
  Frame frame;
  int fd;
  pid_t sender;
  ASSERT_EQ(ReceiveFrame(judge_, &frame, 1000, &fd, &sender), Receive::kFrame);
  EXPECT_EQ(frame.kind, FrameKind::kHello);
  EXPECT_EQ(frame.args[1], 8u);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(sender, getpid());
  close(fd);
}

// The number that the next descriptor gets: the same as before when none was left open.
int NextDescriptor() {
  const int fd = dup(STDERR_FILENO);
  close(fd);
  return fd;
}

void SendWithDescriptors(int socket, const Frame& frame, int count) {
  iovec data{const_cast<Frame*>(&frame), sizeof frame};
  alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(static_cast<size_t>(count) * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(static_cast<size_t>(count) * sizeof(int));
  const int sent = STDERR_FILENO;
  for (int i = 0; i < count; ++i)
    std::memcpy(CMSG_DATA(header) + static_cast<size_t>(i) * sizeof sent, &sent, sizeof sent);
  ASSERT_EQ(sendmsg(socket, &message, 0), static_cast<ssize_t>(sizeof frame));
}

// Found as the fuzzers were written: a host that attached several descriptors to each of its frames
// had all but one of them stay open in the judge, a thousand candidates long.
TEST_F(ChannelTest, DescriptorsThatNobodyAskedForAreClosed) {
  for (const int on : {0, 1}) {
    ASSERT_EQ(setsockopt(judge_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    for (const uint32_t magic : {kMagic, 0u}) {
      for (const int count : {1, 2, 9, 16}) {
        const int next = NextDescriptor();
        Frame frame;
        SendWithDescriptors(host_, Frame{magic, FrameKind::kDone, {}}, count);
        ReceiveFrame(judge_, &frame, 1000);
        EXPECT_EQ(NextDescriptor(), next) << count << " descriptors, none wanted";
        SendWithDescriptors(host_, Frame{magic, FrameKind::kDone, {}}, count);
        int fd;
        ReceiveFrame(judge_, &frame, 1000, &fd);
        EXPECT_EQ(fd, next);
        close(fd);
        EXPECT_EQ(NextDescriptor(), next) << count << " descriptors, one wanted";
      }
    }
  }
}

TEST_F(ChannelTest, AWrongMagicAShortAndALongMessageAreMalformed) {
  Frame frame{};
  ASSERT_TRUE(SendFrame(host_, frame));
  EXPECT_EQ(ReceiveFrame(judge_, &frame, 1000), Receive::kMalformed);
  ASSERT_EQ(send(host_, "x", 1, 0), 1);
  EXPECT_EQ(ReceiveFrame(judge_, &frame, 1000), Receive::kMalformed);
  char large[sizeof(Frame) + 1] = {};
  std::memcpy(large, &kMagic, sizeof kMagic);
  ASSERT_EQ(send(host_, large, sizeof large, 0), static_cast<ssize_t>(sizeof large));
  EXPECT_EQ(ReceiveFrame(judge_, &frame, 1000), Receive::kMalformed);
}

TEST_F(ChannelTest, SilenceIsATimeoutAndAGonePeerIsClosed) {
  Frame frame{};
  EXPECT_EQ(ReceiveFrame(judge_, &frame, 10), Receive::kTimeout);
  close(host_);
  host_ = -1;
  EXPECT_EQ(ReceiveFrame(judge_, &frame, 1000), Receive::kClosed);
  EXPECT_FALSE(SendFrame(judge_, Frame{kMagic, FrameKind::kQuit, {}}));
}

}  // namespace
}  // namespace assay::wire
