// Chooses the queues between the hosts of a verdict and the device.
#pragma once

#include <string_view>

#include "hosts/device_access.h"
#include "session/terms.h"

namespace assay {

// Returns the queues of both sides' hosts, the same for both, where this candidate is judged by
// these terms: one, which makes a context in a third of the time, if nothing in either side's
// source speaks of several streams. `candidate`: its source; empty: not known yet.
DeviceQueues QueuesOf(const SessionTerms& terms, std::string_view candidate);

}  // namespace assay
