// `--grad`: makes of a problem one whose forward gives its gradients, too, and likewise of a
// candidate in Python. Both stay files that mean the same wherever they are judged: what is added
// are lines at their end, and host/python/assay_host/gradients.py does the work. A file that has
// these lines stays as it is.
#pragma once

#include <string>

#include "model/gradients.h"
#include "model/problem.h"

namespace assay {

// The work of one call that a suite gives is of forward alone: it is left out.
void AddGradients(ProblemRequest* problem);
// Returns the text of a candidate in Python with the lines that add its gradients.
std::string CandidateWithGradients(const std::string& content);
// Returns true for what AddGradients returns.
bool HasGradients(const ProblemRequest& problem);
// Returns the problem's name and text as they are without them.
std::string NameWithoutGradients(const std::string& name);
std::string SourceWithoutGradients(const std::string& source);

}  // namespace assay
