// The parts that all pairs of one speed gate share. None of them knows of processes: tests run
// whole pairs on stand-ins for both sides and their inputs.
#pragma once

#include <random>

#include "base/clock.h"
#include "speed/block_length.h"
#include "speed/copy_policy.h"
#include "speed/exchange.h"
#include "speed/gate2_terms.h"
#include "speed/ledger.h"
#include "speed/replay_policy.h"

namespace assay {

struct GateParts {
  // All arguments outlive it. Once `budget` has expired, short blocks count as they are.
  GateParts(const Forms& forms_in, const Terms& terms_in, Inputs& inputs_in,
            std::mt19937_64& random_in, Deadline& budget_in)
      : forms(forms_in),
        terms(terms_in),
        inputs(inputs_in),
        random(random_in),
        budget(budget_in),
        copies(forms, inputs.Limits().on_device),
        replays(forms.may_replay),
        exchange(inputs, copies, replays, ledger, random) {}
  GateParts(const GateParts&) = delete;
  GateParts& operator=(const GateParts&) = delete;

  bool Toss() { return random() % 2 == 0; }

  const Forms& forms;
  const Terms& terms;
  Inputs& inputs;
  std::mt19937_64& random;
  Deadline& budget;
  BlockLength length;
  double call_ns = 0;  // of the faster side, as far as is known
  CopyPolicy copies;
  ReplayPolicy replays;
  Ledger ledger;
  Exchange exchange;
};

}  // namespace assay
