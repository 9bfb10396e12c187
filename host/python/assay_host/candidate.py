"""The candidate's side: imports a file with `class ModelNew`, gives it the reference's weights,
runs timed blocks, on the device that the settings name. As the opponent it does the same with the
problem's own `class Model`: two processes that load in different ways differ by a percent of a
short call, whatever they call.

Untrusted from the import on: every word of this process is a diagnostic. Requests:
  kLoad    a descriptor that comes with it holds the construction record, which else is a file
           [how weights were matched (weights.py), the candidate's tensors that stand for none of
           the reference's, how many of the reference's it has not, the first 64 as bits];
           args: 1: imports and constructs alone, for which no device is needed []; 0 does the rest
  kBlocks  [calls that failed, Failure of the first]; the first one's text is in the report
  kState   args: slot, bytes of JSON; see module_state.py
Inputs are mapped read-only, except on a device: a forward that writes to them ends the process,
unless the reference's does so, too.
"""

import importlib.machinery
import importlib.util
import os
import sys
import typing

import torch

from assay_host import blocks, copies, device, extensions, failure, layout, problem, record, values
from assay_host import module_state, weights, wire
from assay_host.failure import Failure


class Part(typing.NamedTuple):
    """The program that the process runs, and the numbers of its failures."""

    module: str  # folder and name of the file
    class_name: str
    locks_down: bool
    load: int
    entry: int
    forward: int
    output: int


CANDIDATE = Part(
    "candidate",
    "ModelNew",
    True,
    failure.CANDIDATE_LOAD,
    failure.CANDIDATE_ENTRY,
    failure.CANDIDATE_FORWARD,
    failure.CANDIDATE_OUTPUT,
)
# The user's own file, which the oracle has judged fit.
OPPONENT = Part(
    "problem",
    "Model",
    False,
    failure.PROBLEM_LOAD,
    failure.PROBLEM_LOAD,
    failure.PROBLEM_FORWARD,
    failure.PROBLEM_OUTPUT,
)


def path_in(folder):
    """Returns the path of the file in a sandbox's folder that is imported: candidate.py, or the
    entry of a candidate of several files (src/toolchain/packed_folder.h).
    """
    try:
        with open(os.path.join(folder, "entry"), encoding="utf-8") as file:
            return os.path.join(folder, "folder", file.read())
    except FileNotFoundError:
        return os.path.join(folder, "candidate.py")


def _is_entry(path):
    """Returns True for the entry of a candidate of several files."""
    return os.path.exists(os.path.join(os.path.dirname(path), os.pardir, "entry"))


def _spec(name, path, loader):
    """Returns the file's import spec. An entry finds its files as a script does, by names and by
    paths from its folder, and as a package, by relative imports.
    """
    if not _is_entry(path):
        return importlib.util.spec_from_file_location(name, path, loader=loader)
    folder = os.path.dirname(path)
    os.chdir(folder)
    sys.path.insert(0, folder)
    return importlib.util.spec_from_file_location(
        name, path, loader=loader, submodule_search_locations=[folder]
    )


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a candidate and sets those of the problem's constants that it has, too: answers in
    KernelBench's form have the problem's sizes at their top.
    """

    def __init__(self, name, path, settings):
        super().__init__(name, path)
        self._settings = settings

    def source_to_code(self, data, path, **options):
        if not self._settings:
            return super().source_to_code(data, path, **options)
        tree = problem.apply_known_settings(problem.parse_text(data, path), self._settings)
        return compile(tree, path, "exec", dont_inherit=True)


def import_file(path, settings, seed, part=CANDIDATE):
    """Imports the file as a module, with the problem's changed constants, under the reference's
    seed. Raises Failure(part.load) with the file's line.
    """
    problem.seed_everything(seed)
    loader = _Loader(part.module, path, settings)
    spec = _spec(part.module, path, loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[part.module] = module
    sys.argv = [path]  # not the host's: a file may read them as it is imported
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise failure.because(part.load, error, path) from error
    # Many problems say `super(Model, self)`, and so does a copy whose class alone was renamed.
    if part is CANDIDATE and hasattr(module, part.class_name) and not hasattr(module, "Model"):
        module.Model = getattr(module, part.class_name)
    return module


def _class_names(record, part):
    """Returns the names that the part's class may have. A problem's class of another name than
    Model has candidates that are named after it, too.
    """
    name = record["class_name"]
    if part is not CANDIDATE:
        return [name]
    return [part.class_name] if name == "Model" else [part.class_name, f"{name}New", name]


def construct(module, record, seed, path, part=CANDIDATE):
    """Constructs the part's class with the init inputs under the reference's seed. Raises
    Failure(part.entry or part.load).
    """
    name = next((name for name in _class_names(record, part) if hasattr(module, name)), "")
    model_class = getattr(module, name, None)
    if not callable(model_class):
        other = record["class_name"]
        has_other = isinstance(getattr(module, other, None), type)
        raise Failure(
            part.entry,
            f"{os.path.basename(path)} defines no class {part.class_name}: "
            + (
                f"its class {other} is taken for the reference's; call the candidate's ModelNew"
                if has_other
                else "a candidate in Python is a class ModelNew that is called like the problem's "
                "Model"
            ),
        )
    if not hasattr(module, record["class_name"]):
        setattr(module, record["class_name"], model_class)  # for super(Model, self) in a copy
    arguments = record["init_inputs"]
    problem.seed_everything(seed)
    try:
        model = model_class(*arguments)
    except BaseException as error:
        made = f"{name}({failure.counted(len(arguments), 'argument')})"
        raise failure.because(part.load, error, path, made + " fails: ") from error
    if not callable(model):
        raise Failure(part.entry, f"{part.class_name} has no forward")
    return model


class Candidate:
    def __init__(self, context, lockdown_fd, part=CANDIDATE):
        self._context = context
        self._lockdown_fd = lockdown_fd
        self._part = part
        folder = context.path(part.module)
        self._path = (
            path_in(folder) if part is CANDIDATE else os.path.join(folder, f"{part.module}.py")
        )
        self._constructed = None  # (imported module, model)
        self._copies = None
        self._match = None
        # (tensor, value) of the state that the reference's forward changes.
        self._state = []

    def handlers(self):
        return {wire.LOAD: self._load, wire.BLOCKS: self._blocks, wire.STATE: self._tell_state}

    def _load(self, args, fd):
        if self._copies is not None or (args[0] == 1 and self._constructed):
            raise Failure(failure.ENVIRONMENT, "a candidate host loads one candidate")
        if self._constructed is None:
            self._construct(fd)
        return () if args[0] == 1 else self._take_weights()

    def _construct(self, fd):
        context = self._context
        settings = context.settings
        device.start(settings)
        extensions.prepare(context.root)
        extensions.prefer_ptxas_of_inductor(self._path)
        if extensions.unpack(context.path("candidate", "extensions.tar"), context.root):
            extensions.skip_finished_builds()
        if device.name(settings) != device.CPU:
            extensions.ask_tools_for_triton(context.root, torch.cuda.get_device_capability())
        self._record = record.read(context.path("candidate", "init.pickle"), fd)
        # Before the first line of foreign code: a process or a timer that it starts as it is
        # imported would outlive the rules.
        if self._part.locks_down:
            self._lock_down()
        seed = int(settings.get("weights_seed", 0))
        torch.set_default_dtype(self._record["default_dtype"])
        module = import_file(self._path, settings.get("set", {}), seed, self._part)
        model = construct(module, self._record, seed, self._path, self._part)
        self._constructed = module, model

    def _take_weights(self):
        seed = int(self._context.settings.get("weights_seed", 0))
        module, model = self._constructed
        model, tensors = self._with_weights(model)
        places = copies.places(
            tensors, self._record["parameters"], self._views(0), self._record["changed"]
        )
        self._copies = copies.Copies(
            model,
            [tensors[index] for index in places],
            lambda slot: self._views(slot, places),
            lambda: self._made_again(module, seed, places),
        )
        missing = self._match.missing()
        bits = sum(1 << index for index in missing if index < 64)
        return self._match.how, self._match.left_over, len(missing), bits

    def _with_weights(self, model):
        """Gives a constructed model the reference's weights. Returns it where it is to run, and its
        tensors in their order, None where it has none. What the first one shows of the match holds
        for all.
        """
        if device.name(self._context.settings) != device.CPU:
            model = device.move(model, self._part.load, self._path)
        torch.set_grad_enabled(False)  # foreign code may have changed it
        try:
            self._materialise_lazy_parameters(model)
            views = self._views(0)
            state = weights.state_tensors(model) if hasattr(model, "state_dict") else {}
            if self._match is None:
                self._match = weights.match(state, self._record["parameters"], views)
            tensors = self._match.tensors(state)
            for tensor, view in zip(tensors, views):
                if tensor is not None:
                    tensor.detach().copy_(view)
            self._keep_state(model)
        except Exception as error:
            raise Failure(
                self._part.load,
                f"{self._part.class_name} does not take the weights: "
                f"{failure.describe_exception(error)}",
            ) from error
        return model, tensors

    def _made_again(self, module, seed, places):
        model = construct(module, self._record, seed, self._path, self._part)
        model, tensors = self._with_weights(model)
        return model, [tensors[index] for index in places]

    def _views(self, slot, places=None):
        context = self._context
        if wire.WEIGHTS not in context.regions:
            return []
        region, complexes = context.region(wire.WEIGHTS), self._record["complexes"]
        return values.parameter_views(context.plan, region, slot, places, complexes)

    def _slots(self):
        record = self._record
        layouts = {n: layout.Layout(*found) for n, found in record["layouts"].items()}
        return values.Slots(
            self._context.plan, self._context.regions, record["template"], layouts, record["form"]
        )

    def _materialise_lazy_parameters(self, model):
        if hasattr(model, "state_dict") and weights.has_lazy(model):
            model(*self._slots().arguments(0, torch.clone))

    def _keep_state(self, model):
        """Arranges that the state which the reference's forward changes, and no more, is put back
        before each block, while the judge waits.
        """
        tensors = weights.state_tensors(model) if hasattr(model, "state_dict") else {}
        if hasattr(model, "named_buffers"):
            tensors.update(model.named_buffers())
        self._state += [
            (tensors[name].detach(), tensors[name].detach().clone())
            for name in self._record["changed"]
            if name in tensors
        ]

    def _restore(self):
        for tensor, saved in self._state:
            tensor.copy_(saved)

    def _tell_state(self, args, fd):
        slot, size_bytes = args[:2]
        return (module_state.tell(self._copies.modules(slot + 1)[slot], size_bytes, fd),)

    def _lock_down(self):
        library = self._context.library
        error = library.report_faults(self._context.region(wire.REPORT).address)
        error = error or library.lock_down(self._lockdown_fd)
        if error:
            raise Failure(
                failure.ENVIRONMENT,
                f"the candidate host cannot lock itself down: {os.strerror(error)}",
            )
        os.close(self._lockdown_fd)

    def _blocks(self, _args, _fd):
        if self._copies is None:
            raise Failure(failure.ENVIRONMENT, "no candidate is loaded")
        torch.set_grad_enabled(False)
        slots = self._slots()
        first = blocks.FirstFailure(
            self._path, self._part.forward, self._part.output, self._context.say
        )
        blocks.run_blocks(
            self._context.library,
            self._context.loop,
            slots,
            self._copies.modules(slots.count),
            self._record["same"],
            self._restore,
            first,
        )
        return first.count, first.number
