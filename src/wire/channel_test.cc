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
