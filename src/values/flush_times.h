// Tells by the time of a flush if the device's memory serves others at the same time. Pure.
//
// A driver clears memory that processes give back, as they end or free it: for 2.5 ms a GiB on an
// H200, during which everybody else has a tenth less of the bandwidth, and a flush takes 9% longer
// (bench/results/h200/given_back.txt).
#pragma once

#include <deque>

namespace assay {

class FlushTimes {
 public:
  // Returns true if a flush that took `ms` had the bandwidth that most had of late.
  bool HadAll(double ms) const;
  void Add(double ms);

 private:
  std::deque<double> latest_;
};

}  // namespace assay
