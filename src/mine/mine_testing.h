// Something mined, for the tests of mining.
#pragma once

#include <string>

#include "mine/mined.h"

namespace assay {

inline Mined TestMined(const std::string& key, const std::string& mode, const std::string& code) {
  Mined mined;
  mined.key = key;
  mined.date = "2026-11-27T10:00:00Z";
  mined.problem = "softmax";
  mined.path = "/suite/softmax.py";
  mined.size = "small";
  mined.set = {{"ROWS", "64"}};
  mined.hash = "a";
  mined.mode = mode;
  mined.device = "cpu";
  mined.code = {"class Model: pass\n", "Model",          code,
                "generated " + code,   {"triton_per_0"}, {"extern_kernels.mm"},
                {{"torch", "2.11.0"}}};
  return mined;
}

}  // namespace assay
