#include "worker/request_queue.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

WorkerRequest Called(const std::string& id) {
  WorkerRequest request;
  request.id = id;
  return request;
}

TEST(RequestQueue, HandsOutInOrderAndEndsOnceItIsClosed) {
  RequestQueue queue;
  EXPECT_TRUE(queue.Push(Called("1")));
  EXPECT_TRUE(queue.Push(Called("2")));
  queue.Close();
  EXPECT_FALSE(queue.Push(Called("3")));
  EXPECT_EQ(queue.Next()->id, "1");
  EXPECT_EQ(queue.Next()->id, "2");
  EXPECT_FALSE(queue.Next());
}

TEST(RequestQueue, SaysWhetherARequestIsThere) {
  RequestQueue queue;
  EXPECT_FALSE(queue.Await(1));
  queue.Push(Called("1"));
  EXPECT_TRUE(queue.Await(1));
  queue.Next();
  EXPECT_FALSE(queue.Await(1));
  queue.Close();
  EXPECT_TRUE(queue.Await(1));
}

TEST(RequestQueue, OneThatWaitsIsTakenBack) {
  RequestQueue queue;
  queue.Push(Called("1"));
  queue.Push(Called("2"));
  EXPECT_TRUE(queue.Cancel("1"));
  EXPECT_EQ(queue.Next()->id, "2");
}

TEST(RequestQueue, TheOneInHandIsToldToStopAndTheNextIsNot) {
  RequestQueue queue;
  queue.Push(Called("1"));
  queue.Push(Called("2"));
  queue.Next();
  EXPECT_FALSE(queue.Cancel("1"));
  EXPECT_TRUE(queue.stop_flag());
  queue.Next();
  EXPECT_FALSE(queue.stop_flag());
}

TEST(RequestQueue, TakesWhatWaitsWithoutWaiting) {
  RequestQueue queue;
  queue.Push(Called("1"));
  EXPECT_EQ(queue.TakeWaiting()->id, "1");
  EXPECT_FALSE(queue.TakeWaiting());
  EXPECT_FALSE(queue.Cancel("1"));  // it is done, and nobody is to stop
  EXPECT_FALSE(queue.stop_flag());
  queue.Push(Called("2"));
  EXPECT_EQ(queue.TakeWaiting()->id, "2");
  queue.Cancel("2");
  EXPECT_TRUE(queue.stop_flag());
}

TEST(RequestQueue, ALookTakesNothing) {
  RequestQueue queue;
  EXPECT_FALSE(queue.Peek());
  queue.Push(Called("1"));
  queue.Push(Called("2"));
  EXPECT_EQ(queue.Peek()->id, "1");
  EXPECT_EQ(queue.Next()->id, "1");
  EXPECT_EQ(queue.Peek()->id, "2");
  EXPECT_FALSE(queue.Cancel("1"));  // still in hand
  EXPECT_TRUE(queue.stop_flag());
}

TEST(RequestQueue, AnUnknownIdStopsNothing) {
  RequestQueue queue;
  queue.Push(Called("1"));
  queue.Next();
  EXPECT_FALSE(queue.Cancel("7"));
  EXPECT_FALSE(queue.Cancel(""));
  EXPECT_FALSE(queue.stop_flag());
}

TEST(RequestQueue, StopLeavesNothing) {
  RequestQueue queue;
  queue.Push(Called("1"));
  queue.Push(Called("2"));
  queue.Next();
  queue.Stop();
  EXPECT_TRUE(queue.stop_flag());
  EXPECT_FALSE(queue.Next());
}

}  // namespace
}  // namespace assay
