#include "speed/gate2_terms.h"

#include "base/defences.h"

namespace assay {

Forms FormsOf(CandidateForm form, std::optional<CandidateForm> against, const std::string& baseline,
              bool replay, bool on_device) {
  Forms forms;
  const bool is_python = form == CandidateForm::kPython;
  forms.candidate_in_python = is_python;
  forms.subtract_settle = !against && !is_python;
  forms.trusts_copies = !against && is_python;
  if (Stands(Defence::kLeftResults)) {
    forms.candidate_leaves = is_python;
    forms.opponent_leaves = against ? *against == CandidateForm::kPython : is_python;
  }
  // A graph that was captured as the module was compiled has its results at one place, which the
  // judge cannot read.
  const bool captured =
      baseline == "compiled-reduce-overhead" || baseline == "compiled-max-autotune";
  if (on_device && !against && captured) forms.candidate_leaves = forms.opponent_leaves = false;
  forms.foreign_code = form != CandidateForm::kDevice;
  forms.trusts_opponent = !against;
  forms.device_forms = !forms.foreign_code && against == CandidateForm::kDevice;
  forms.may_replay = replay && on_device && !forms.foreign_code && (!against || forms.device_forms);
  return forms;
}

}  // namespace assay
