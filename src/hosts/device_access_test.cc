// Tests which of a machine's GPUs a sandbox is shown.
#include "hosts/device_access.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class DeviceNodesTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    for (const char* name : {"null", "nvidia-caps", "nvidia-modeset", "nvidia-uvm", "nvidia0",
                             "nvidia1", "nvidia10", "nvidiactl", "nvidiax"})
      std::ofstream(folder_ + "/" + name).put('\n');
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> Nodes(std::optional<int> number) const {
    std::vector<std::string> names;
    for (const fs::path path : DeviceNodes(folder_, number)) names.push_back(path.filename());
    return names;
  }

  const std::string folder_ = testing::TempDir() + "device_nodes";
};

// A sandbox was shown all of them: a candidate could have worked on two GPUs.
TEST_F(DeviceNodesTest, AreThoseOfOneGpu) {
  EXPECT_THAT(Nodes(1), ElementsAre("nvidia-uvm", "nvidia1", "nvidiactl"));
  EXPECT_THAT(Nodes(10), ElementsAre("nvidia-uvm", "nvidia10", "nvidiactl"));
}

TEST_F(DeviceNodesTest, AreOfAllWhereItIsNotKnownWhichIsIt) {
  const auto all = ElementsAre("nvidia-uvm", "nvidia0", "nvidia1", "nvidia10", "nvidiactl");
  EXPECT_THAT(Nodes(std::nullopt), all);
  EXPECT_THAT(Nodes(7), all);
}

TEST_F(DeviceNodesTest, WithoutADriverThereAreNone) {
  EXPECT_THAT(DeviceNodes(folder_ + "/none", 0), ElementsAre());
}

TEST(ConnectionsOf, AreTheUsersOwnIfThereAreSome) {
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  EXPECT_EQ(ConnectionsOf(DeviceQueues::kOne), "1");
  EXPECT_EQ(ConnectionsOf(DeviceQueues::kByDefault), std::nullopt);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  EXPECT_EQ(ConnectionsOf(DeviceQueues::kOne), "4");
  EXPECT_EQ(ConnectionsOf(DeviceQueues::kByDefault), "4");
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

}  // namespace
}  // namespace assay
