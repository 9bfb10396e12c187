// The doctor's findings, for people.
#pragma once

#include <string>

#include "model/doctor_report.h"
#include "report/frame.h"

namespace assay {

std::string RenderDoctor(const DoctorReport& report, const CardStyle& style);

}  // namespace assay
