#include "worker_client/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <numeric>
#include <tuple>

#include "base/clock.h"
#include "base/files.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// Workers that are scripts.
class WorkerFleet : public ::testing::Test {
 protected:
  WorkerFleet() : folder_(TemporaryFolder::Create().value()) { ::signal(SIGPIPE, SIG_IGN); }
  std::string Script(const std::string& body) const {
    const std::filesystem::path path = folder_.path() / "worker";
    std::ofstream(path) << "#!/bin/sh\n" << body;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }
  static Fleet::Said Next(Fleet& fleet) {
    for (const Deadline end = Deadline::AfterSeconds(20); end.RemainingNs() > 0;)
      if (auto said = fleet.Wait(100)) return *said;
    return {99, "nothing came", ""};
  }

  TemporaryFolder folder_;
};

TEST_F(WorkerFleet, TalksInLines) {
  WorkerProcesses fleet(Script("echo \"$@ $CUDA_VISIBLE_DEVICES\"\n"
                               "while read line; do echo \"got $line\"; done\n"),
                        {{"cuda", "1"}, {"cuda", "0"}}, {"--sessions", "1"});
  EXPECT_EQ(fleet.size(), 2u);
  EXPECT_EQ(fleet.Name(0), "cuda:1");
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_EQ(Next(fleet).line, "worker --device cuda --sessions 1 1");
  // More than a pipe holds.
  const std::string long_line(300'000, 'x');
  fleet.Send(0, long_line);
  fleet.Send(0, "second");
  EXPECT_EQ(Next(fleet).line, "got " + long_line);
  EXPECT_EQ(Next(fleet).line, "got second");
  EXPECT_FALSE(fleet.Wait(0));
}

TEST_F(WorkerFleet, ToldOfAnEndAfterTheLastLine) {
  WorkerProcesses fleet(Script("echo last; exit 7\n"), {{"cpu", ""}}, {});
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_EQ(Next(fleet).line, "last");
  const Fleet::Said said = Next(fleet);
  EXPECT_FALSE(said.line);
  EXPECT_EQ(said.end, "ended with exit code 7");
  fleet.Send(0, "to nobody");
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_EQ(Next(fleet).line, "last");
}

TEST_F(WorkerFleet, AnInterruptAndAKillEndIt) {
  WorkerProcesses fleet(Script("trap 'echo bye; exit 0' TERM\n"
                               "echo ready; while :; do sleep 0.02; done\n"),
                        {{"cpu", ""}}, {});
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_EQ(Next(fleet).line, "ready");
  fleet.Interrupt(0);
  EXPECT_EQ(Next(fleet).line, "bye");
  EXPECT_FALSE(Next(fleet).line);
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_EQ(Next(fleet).line, "ready");
  fleet.Kill(0);
  EXPECT_FALSE(fleet.Wait(0));
}

TEST_F(WorkerFleet, AReleasedWorkerEndsByItself) {
  WorkerProcesses fleet(Script("while read line; do echo \"got $line\"; done; exit 3\n"),
                        {{"cpu", ""}}, {});
  ASSERT_TRUE(fleet.Start(0, 1));
  fleet.Send(0, "one");
  fleet.Release(0);
  EXPECT_EQ(Next(fleet).line, "got one");
  EXPECT_EQ(Next(fleet).end, "ended with exit code 3");
}

TEST_F(WorkerFleet, AProgramThatIsNotThereEndsAtOnce) {
  WorkerProcesses fleet((folder_.path() / "gone").string(), {{"cpu", ""}}, {});
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_THAT(Next(fleet).end, HasSubstr("exit code 127"));
}

std::vector<int> Cores(int count) {
  std::vector<int> cores(static_cast<size_t>(count));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

TEST(WorkersOfGpu, GrowWithTheCores) {
  EXPECT_EQ(WorkersOfGpu(2, 1), 1u);
  EXPECT_EQ(WorkersOfGpu(8, 1), 2u);
  EXPECT_EQ(WorkersOfGpu(16, 1), 8u);
  EXPECT_EQ(WorkersOfGpu(64, 1), 8u);
  EXPECT_EQ(WorkersOfGpu(32, 2), 8u);
  EXPECT_EQ(WorkersOfGpu(4, 2), 1u);
}

TEST(PlacesForWorkers, SetsCoresApartForMeasuring) {
  const auto places = PlacesForWorkers({{"cuda", ""}}, 0, Cores(16));
  ASSERT_EQ(places.size(), 8u);
  for (const WorkerPlace& place : places) {
    EXPECT_EQ(place.measuring_cores, (std::vector<int>{12, 13, 14, 15}));
    EXPECT_EQ(place.cores, Cores(12));
  }
}

TEST(PlacesForWorkers, TwoDevicesMeasureOnCoresOfTheirOwn) {
  const auto places = PlacesForWorkers({{"cuda", "0"}, {"cuda", "1"}}, 0, Cores(32));
  ASSERT_EQ(places.size(), 16u);
  EXPECT_EQ(places[0].measuring_cores, (std::vector<int>{28, 29, 30, 31}));
  EXPECT_EQ(places[15].measuring_cores, (std::vector<int>{24, 25, 26, 27}));
  EXPECT_EQ(places[0].cores, Cores(24));
  EXPECT_EQ(places[15].Name(), "cuda:1");
}

TEST(PlacesForWorkers, OneWorkerHasAllCores) {
  for (const auto& [device, workers, cores] :
       {std::tuple{"cpu", 0, 32}, {"cuda", 0, 6}, {"cuda", 1, 32}}) {
    const auto places =
        PlacesForWorkers({{device, ""}}, static_cast<size_t>(workers), Cores(cores));
    ASSERT_EQ(places.size(), 1u);
    EXPECT_TRUE(places[0].cores.empty());
  }
}

TEST_F(WorkerFleet, TellsAWorkerWhatItShares) {
  WorkerPlace place{"cuda", ""};
  place.measuring_cores = {2, 3};
  place.cores = {0, 1};
  WorkerProcesses fleet(Script("echo \"$@\"\n"), {place, place}, {});
  ASSERT_TRUE(fleet.Start(0, 2));
  EXPECT_EQ(Next(fleet).line, "worker --device cuda --cores 0,1 --measuring-cores 2,3 --sharers 2");
  Next(fleet);
  ASSERT_TRUE(fleet.Start(0, 1));
  EXPECT_EQ(Next(fleet).line, "worker --device cuda --cores 0,1 --measuring-cores 2,3");
}

}  // namespace
}  // namespace assay
