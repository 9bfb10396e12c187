// The doctor's findings, for people.
#pragma once

#include <string>

#include "doctor/doctor.h"
#include "report/frame.h"

namespace assay {

std::string RenderDoctor(const DoctorReport& report, const CardStyle& style);

}  // namespace assay
