// The records of what happens in episodes of training (docs/env.md). Pure.
#pragma once

#include <string>

#include "archive/record.h"

namespace assay {

struct EpisodeEvent {
  std::string environment;  // id of its process
  std::string episode;      // "e1"
  std::string what;         // "reset", "step", "fork", "close"
  std::string problem;      // its name
  std::string terms;        // of judging, as JSON
};

// `facts`: a JSON object with what there is to keep beside, in the words of the event that the
// client got; its messages are left out, since they can be made again.
NewRecord RecordOfEpisode(const EpisodeEvent& event, const std::string& facts);

}  // namespace assay
