#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/dtype.h"
#include "studies/explain_program.h"

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::Role;

// clang-format off
constexpr std::string_view kHead = R"python(
"""One call of a candidate, with its inputs and the outputs that were expected of it. Written by
`assay explain`.
"""

import math
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)

import torch

from assay_host import candidate, inplace, layout, record, structure, weights

)python";

constexpr std::string_view kTail = R"python(

def load(file, dtype, shape):
    with open(os.path.join(FOLDER, file), "rb") as opened:
        content = bytearray(opened.read())
    dtype = getattr(torch, dtype)
    return torch.frombuffer(content, dtype=dtype).view(shape) if content else torch.empty(
        shape, dtype=dtype)


def leaf(described):
    return load(*described) if isinstance(described, tuple) else described


def compare(name, got, expected, tolerance):
    if got.shape != expected.shape or got.dtype != expected.dtype:
        print(f"{name}: got {got.dtype} {tuple(got.shape)}, "
              f"expected {expected.dtype} {tuple(expected.shape)}")
        return True
    got, expected = got.double().flatten(), expected.double().flatten()
    finite = expected[torch.isfinite(expected)].abs()
    scale = finite.max().item() if finite.numel() else 0.0
    same = (got == expected) | (torch.isnan(got) & torch.isnan(expected))
    error = torch.where(same, torch.zeros_like(got), (got - expected).abs())
    error = torch.where(torch.isfinite(error), error, torch.full_like(error, math.inf))
    wrong = torch.nonzero(error > tolerance * scale).flatten()
    for i in wrong[:10].tolist():
        print(f"{name}[{i}]: got {got[i].item():.9g}, expected {expected[i].item():.9g}")
    worst = int(error.argmax()) if error.numel() else 0
    largest = error[worst].item() if error.numel() else 0.0
    print(f"{name}: {wrong.numel()} of {error.numel()} elements differ by more than {tolerance:g} "
          f"of the largest; worst at {worst}, by {largest:g}")
    return wrong.numel() > 0


def give_weights(model, names, views):
    state = weights.state_tensors(model) if hasattr(model, "state_dict") else {}
    for tensor, view in zip(weights.match(state, names, views).tensors(state), views):
        if tensor is not None:
            tensor.detach().copy_(view)


def main():
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    path = candidate.path_in(FOLDER)
    made = record.read(os.path.join(FOLDER, "init.pickle"))
    torch.set_default_dtype(made["default_dtype"])
    module = candidate.import_file(path, SET, SEED)
    model = candidate.construct(module, made, SEED, path)
    give_weights(model, made["parameters"], [load(*each) for each in PARAMETERS])
    leaves = [leaf(each) for each in INPUTS]
    for number, found in made["layouts"].items():
        leaves[number] = layout.view(layout.Layout(*found), leaves[number])
    before = [each.clone() if torch.is_tensor(each) else each for each in leaves]
    template = made["template"]
    result = model(*(leaves if template is None else structure.rebuild(template, leaves)))
    changes = inplace.Changes(CHANGED, made["same"])
    outputs = changes.outputs(structure.flatten_outputs(result, [], made["form"]), leaves)
    wrong = len(outputs) != len(OUTPUTS)
    if wrong:
        print(f"it returns {len(outputs)} outputs; {len(OUTPUTS)} are expected")
    for got, (name, tolerance, expected) in zip(outputs, OUTPUTS):
        wrong = compare(name, got, load(*expected), tolerance) or wrong
    for number, (described, now, then) in enumerate(zip(INPUTS, leaves, before)):
        if torch.is_tensor(now) and number not in CHANGED and not torch.equal(
                torch.nan_to_num(now.double()), torch.nan_to_num(then.double())):
            print(f"{described[0]}: the call changed its input, which is read-only in a judgement")
            wrong = True
    return 1 if wrong else 0


sys.exit(main())
)python";
// clang-format on

std::string Described(const ArgumentSpec& argument) {
  std::string shape;
  for (uint32_t i = 0; i < argument.rank; ++i) shape += fmt::format("{}, ", argument.shape[i]);
  return fmt::format("(\"{}\", \"{}\", ({}))", FileName(argument), DTypeName(argument.dtype),
                     shape);
}

std::string Input(const ArgumentSpec& argument, const std::byte* inputs) {
  const std::byte* value = inputs + argument.offset;
  switch (argument.kind) {
    case wire::Kind::kTensor:
      return Described(argument);
    case wire::Kind::kFloat:
      return fmt::format("float(\"{:.17g}\")", *reinterpret_cast<const double*>(value));
    case wire::Kind::kBool:
      return *reinterpret_cast<const int64_t*>(value) != 0 ? "True" : "False";
    default:
      return fmt::format("{}", *reinterpret_cast<const int64_t*>(value));
  }
}

}  // namespace

std::string ScriptInPython(const Oracle& oracle, const std::string& settings) {
  const auto document = nlohmann::json::parse(settings);
  const wire::Plan& plan = oracle.plan();
  std::string inputs, changed, parameters, outputs;
  int leaf = 0;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.role == Role::kInput) {
      inputs += fmt::format("    {},\n", Input(argument, oracle.inputs(0)));
      if (argument.twin != 0) changed += fmt::format("{}, ", leaf);
      ++leaf;
    }
    if (argument.role == Role::kParameter)
      parameters += fmt::format("    {},\n", Described(argument));
    if (argument.role == Role::kOutput)
      outputs += fmt::format(
          "    (\"{}\", {}, {}),\n", argument.name,
          IsFloatingPoint(argument.dtype) ? 32 * UnitRoundoff(NativeClass(argument.dtype)) : 0.0,
          Described(argument));
  }
  std::string text(kHead.substr(1));
  const auto set = document.value("set", nlohmann::json::object());
  text += fmt::format("SET = {}\nSEED, THREADS = {}, {}\n", set.dump(),
                      document.value("weights_seed", nlohmann::json(0)).dump(),
                      document.value("threads", 1));
  text += fmt::format("CHANGED = [{}]\n", changed);
  text += fmt::format("INPUTS = [\n{}]\nPARAMETERS = [\n{}]\nOUTPUTS = [\n{}]\n", inputs,
                      parameters, outputs);
  return text + std::string(kTail);
}

}  // namespace assay
