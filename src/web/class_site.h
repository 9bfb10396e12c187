// The routes of classes and worklogs for browsers: they gather what a page shows, and take its
// forms.
#pragma once

#include <functional>
#include <vector>

#include "web/class_api.h"
#include "web/layout.h"

namespace assay {

// The frame of a page for whoever asks.
using FrameFor = std::function<PageFrame(const WebRequest&)>;

// Routes that have the desk by reference: it must outlive them.
std::vector<Route> ClassPageRoutes(const ClassDesk& desk, FrameFor frame);

}  // namespace assay
