"""The reference's side of the protocol: describes the problem, draws inputs, evaluates them
natively and in float64, and runs timed blocks. Trusted code, but the problem file that it runs is
foreign: its errors become Failures.

If the settings name a device, the module runs there. The attach frame gives each region's place: an
oracle's regions are on the host, and arguments, results and weights are copied; those of a timed
host are on the device, and used in place.

Requests (results of kDone in brackets):
  kLoad          args[0] 1: brief, for hosts that only time: no check for randomness, no float64;
                 2: the record for constructing candidates, nothing else [0, 0, 0, its bytes]
                 Carries a writable memfd for the candidates' construction record. args[1]: bytes
                 of JSON that stand in it, constants in the place of those of the settings.
                 args[2]: bytes of inputs and outputs up to which float64 goes whole (0: 1 GiB).
                 [argument count, flags, parts of the batch in which float64 goes (0: it
                 goes whole, or not at all), bytes written to that memfd, before constants.py's]
                 flags: 1 forward changes its inputs; 2 float64 works; 4 forward changes state;
                 8 some weights got random values; 16 it has a check of its own; 32 get_inputs()
                 gives the same values under every seed; 64 and the judge's own take their place;
                 128 forward asks for NaN; from 256 on, times 256: number of ready_checks.py
  kStoreWeights  args[0] 0: the state dict goes into the weights region, and the module works there
                 from now on; 1: it takes its weights from the first slot there, and blocks call a
                 module for each slot (copies.py); 2: the judge has changed them since float64
                 copies were made
  kDraw          args: seed, DrawKind, slot, seed of a nudge (0: none) and its size as a power of a
                 half (draws.nudge_all) [number of tensors that the kind changed; of random signs:
                 bits of the inputs that keep theirs because the reference needs it]
  kEvaluate      args: slot, precision (0 native, 1 float64); 2: evaluates nothing [elements of its
                 native outputs that are NaN or infinite]
  kFill          args: seed, first slot, count, whether odd seeds give random signs: values under
                 the seeds from that one on, evaluated natively (fills.py)
  kBlocks        [calls that failed, Failure of the first]; the first one's text is in the report
  kEstimate      see estimate.py
  kProfile       args[0] milliseconds to spend; carries a writable memfd [bytes written to it]
  kMutants, kMutate  see mutants.py; kSelect: see selections.py; kCheck: see own_check.py
"""

import os

import torch

from assay_host import blocks, compiled, constants, copies, describe, device, drawn_weights, draws
from assay_host import estimate, failure, fills, float64, forward, gradients, inplace, input_draws
from assay_host import layout, module_state, mutants, nan_outputs, own_check, pieces, problem
from assay_host import profile, randomness, ready_checks, record, rehearsal, selections, structure
from assay_host import values, weights, wire
from assay_host.failure import Failure

FLAG_CHANGES_INPUTS, FLAG_FLOAT64, FLAG_CHANGES_STATE, FLAG_RANDOMISED = 1, 2, 4, 8
FLAG_CHECK, FLAG_SAME_VALUES, FLAG_OWN_VALUES, FLAG_ASKS_FOR_NAN = 16, 32, 64, 128
READY_CHECK_BITS = 8  # above the flags


class Reference:
    def __init__(self, context):
        self._context = context
        self.path = context.path("problem", "problem.py")  # as its code names it
        self._model = None
        self._float64 = float64.Float64(self)
        self._slots = None
        self._copies = self._compiled = None
        self._draw_kinds = {}
        self._check = own_check.OwnCheck(self, context)
        parts = fills.Fills, mutants.Mutants, selections.Selections, module_state.State
        self._others = *(part(self) for part in parts), self._check
        context.on_attach.append(self._forget_views)

    def handlers(self):
        return {
            wire.LOAD: self._load,
            wire.STORE_WEIGHTS: self._store_weights,
            wire.DRAW: self._draw,
            wire.EVALUATE: self._evaluate,
            wire.BLOCKS: self._blocks,
            wire.ESTIMATE: self._estimate,
            wire.PROFILE: self._profile,
            **{k: handler for part in self._others for k, handler in part.handlers().items()},
        }

    def _forget_views(self, number):
        self._slots = None
        if number == wire.WEIGHTS and self._copies is not None:
            self._copies.forget()

    # Loading

    def _load(self, args, fd):
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float32)
        self._model = self._slots = self._copies = self._form = None
        settings = self._context.settings
        device.start(settings)
        self._place = device.Placement(settings)
        tree = problem.parse_set(self.path, settings, args[1] and os.pread(fd, args[1], 0))
        seed = int(settings.get("weights_seed", 0))
        problem.seed_everything(seed)
        self._module = problem.execute(tree, self.path)
        problem.seed_everything(seed)
        init_inputs = problem.init_inputs(self._module, self.path)
        pickled = record.pickled(init_inputs)
        if args[0] == 2:
            return 0, 0, 0, record.write(fd, pickled, {"class_name": self._module.class_name})
        problem.seed_everything(seed)
        model = problem.construct(self._module, init_inputs, self.path)
        self._model = self._place.module(model, self.path)
        leaves = self._first_draw()
        signature = describe.Signature(self._place.device)
        signature.add_inputs(leaves)
        self._inputs = input_draws.InputDraws(
            self._called_for_inputs,
            self._place,
            int(settings.get("seed", 0)),
            signature.of_role(wire.INPUT),
        )
        likenesses = [rehearsal.likeness(value) for _, value in leaves]
        self._materialise_lazy_parameters(leaves)
        describe.refuse_unsupported(weights.state_tensors(self._model), self._place.device)
        treatment = settings.get("weights", weights.VARIED)
        keeps = args[0] != 0 or treatment == weights.CONSTRUCTED
        drawn = {} if keeps else weights.randomise_constant(self._model, seed)
        (outputs, used_bytes), kept = drawn_weights.settle(
            weights.state_tensors(self._model), drawn, lambda: self._first_run(leaves, args[0] == 0)
        )
        state = weights.state_tensors(self._model)
        constant = [*self._changed_names, *kept] if treatment == weights.VARIED else state
        self._complexes = signature.add_weights(
            state, lambda *named: weights.varies(*named, constant, self._place.device)
        )
        self._layouts, said = layout.lay_out(leaves, self._changes.inputs, signature)
        signature.add_outputs(outputs, used_bytes, gradients.names(self._model, leaves))
        self._nan = nan_outputs.NanOutputs(outputs)
        flags = nan_outputs.are_asked_for(tree) * FLAG_ASKS_FOR_NAN
        flags |= ready_checks.number_of_function(tree) << READY_CHECK_BITS
        flags |= FLAG_CHANGES_INPUTS if self._changes.inputs else 0
        flags |= FLAG_CHANGES_STATE if self._changed_names else 0
        flags |= FLAG_RANDOMISED if len(drawn) > len(kept) else 0
        flags |= FLAG_CHECK if self._check.load(self._module) else 0
        self._float64.learn(None if args[0] else leaves, outputs, args[2] or pieces.WHOLE_BYTES)
        del outputs  # they are large, as the leaves are
        self._timed = self._baseline(leaves, settings.get("baseline", "eager"))
        leaves = None
        flags |= FLAG_FLOAT64 if self._float64.works else 0
        if args[0] == 0:
            repeats, own = self._inputs.learn(self._truth_of)
            flags |= (FLAG_SAME_VALUES if repeats else 0) | (FLAG_OWN_VALUES if own else 0)
        said = [said, drawn_weights.words(kept), self._inputs.words()]
        self._context.say("; ".join(filter(None, said)))
        self._place.finish()
        signature.write(self._context.report)
        record_bytes = record.write(
            fd,
            pickled,
            {
                "template": self._template,
                "form": self._form,
                "parameters": list(state),
                "complexes": self._complexes,
                "same": self._changes.same,
                "layouts": {n: tuple(found) for n, found in self._layouts.items()},
                "likenesses": likenesses,
                "class_name": self._module.class_name,
                "changed": self._changed_names,
            },
        )
        constants.write(fd, record_bytes, self._module, problem.constant_names(tree))
        return len(signature.rows), flags, self._float64.piece_count(), record_bytes

    def _first_draw(self):
        """Returns the leaves of the ordinary draw under the seed of the settings."""
        seed = int(self._context.settings.get("seed", 0))
        return self._place.draw(lambda: self._called_for_inputs(seed))

    def _called_for_inputs(self, seed):
        """Returns get_inputs() under a seed as (name, value) leaves; also sets the template that
        rebuilds its nesting.
        """
        problem.seed_everything(seed)
        inputs = problem.inputs(self._module, self._model, self.path)
        names = describe.forward_names(self._model.forward, len(inputs))
        leaves = []
        self._template = (
            "list",
            [structure.flatten(value, name, leaves) for value, name in zip(inputs, names)],
        )
        return leaves

    def _results(self, leaves):
        """Returns forward's results as a flat list of tensors. Raises Failure as forward.call."""
        arguments = structure.rebuild(self._template, leaves)
        results, self._form = forward.call(
            self._model, arguments, self._place, self.path, self._form
        )
        return results

    def _forward(self, leaves):
        """Returns the outputs: forward's results, then the inputs that it changes. Raises Failure
        as _results() does.
        """
        return self._changes.outputs(self._results(leaves), leaves)

    def _materialise_lazy_parameters(self, leaves):
        if weights.has_lazy(self._model):
            self._results([self._place.copy(value) for _, value in leaves])

    def _first_run(self, leaves, check_random):
        """Runs forward and learns what it changes; the state afterwards is the constructed one.
        Returns the outputs, and the bytes that it changes by number of the input.
        """
        saved = weights.Saved(self._model)
        before = [value for _, value in leaves]
        given = [self._place.copy(value) for value in before]
        problem.seed_everything(1)
        self._changes, results = inplace.observed(self._results, leaves, given)
        outputs = self._changes.outputs(results, given)
        if not outputs:
            raise Failure(
                failure.PROBLEM_OUTPUT,
                "forward returns nothing and changes none of its inputs; outputs must be tensors",
            )
        used_bytes = {
            number: inplace.changed_bytes(before[number], given[number])
            for number in self._changes.inputs
        }
        del given, results
        state = weights.every_tensor(self._model)
        self._changed_names = saved.changed(state)
        if check_random or self._changed_names:
            # A later call, or the state that is put back, may write where they lie.
            outputs = [tensor.clone() for tensor in outputs]
        if check_random:
            randomness.refuse(
                self._model, self.path, outputs, lambda seed: self._under(seed, before)
            )
        for name in self._changed_names:
            state[name].copy_(saved.tensors[name])
        self._restorer = weights.Restorer(self._model, self._changed_names)
        return outputs, used_bytes

    def _under(self, seed, leaves):
        problem.seed_everything(seed)
        return self._forward([self._given(value) for value in leaves])

    def _baseline(self, leaves, baseline):
        """Returns the function that blocks call if the problem has no weights."""
        self._compiled = None
        if baseline not in compiled.MODES:
            return self._model
        copied = self._place.device != device.CPU and bool(weights.state_tensors(self._model))
        self._compiled = compiled.Compiled(baseline, copied)
        made = self._compiled.made(
            self._model,
            lambda: structure.rebuild(
                self._template, [self._place.copy(value) for _, value in leaves]
            ),
        )
        self._restorer.restore()
        return made

    # Requests after loading

    def slots(self):
        if self._model is None:
            raise Failure(failure.ENVIRONMENT, "no problem is loaded")
        torch.set_grad_enabled(False)
        if self._slots is None:
            context = self._context
            self._slots = values.Slots(
                context.plan, context.regions, self._template, self._layouts, self._form
            )
        return self._slots

    def _store_weights(self, args, _fd):
        if self._model is None:
            raise Failure(failure.ENVIRONMENT, "no problem is loaded")
        if args[0] == 2:
            self._float64.refresh()
            return ()
        views = self._views(0)
        state = weights.state_tensors(self._model)
        tensors = list(state.values())
        if len(views) != len(tensors):
            raise Failure(
                failure.ENVIRONMENT,
                f"the plan has {len(views)} parameters, the model {len(tensors)}",
            )
        places = copies.places(tensors, state, views, self._changed_names)
        if args[0] == 0:
            self._restorer.restore()
            for view, tensor in zip(views, tensors):
                view.copy_(tensor.detach())
            for index in places:
                tensors[index].data = views[index]
        else:
            for view, tensor in zip(views, tensors):
                tensor.detach().copy_(view)
            self._copies = copies.Copies(
                self._model,
                [tensors[index] for index in places],
                lambda slot: self._views(slot, places),
                lambda: self._made_again(places),
            )
        self._restorer = weights.Restorer(self._model, self._changed_names)
        self._float64.forget_tensors()
        self._place.finish()
        return ()

    def _views(self, slot, places=None):
        context = self._context
        if wire.WEIGHTS not in context.regions:
            return []
        return values.parameter_views(
            context.plan, context.region(wire.WEIGHTS), slot, places, self._complexes
        )

    def _made_again(self, places):
        """Constructs the module again. Returns it, and its tensors that lie in slots."""
        seed = int(self._context.settings.get("weights_seed", 0))
        problem.seed_everything(seed)
        init_inputs = problem.init_inputs(self._module, self.path)
        problem.seed_everything(seed)
        model = problem.construct(self._module, init_inputs, self.path)
        model = self._place.module(model, self.path)
        if weights.has_lazy(model):
            model(*self.slots().arguments(0, self._place.copy))
        every, original = weights.every_tensor(model), weights.every_tensor(self._model)
        for name in self._changed_names:
            every[name].copy_(original[name])
        self._restorer.add(model)
        tensors = list(weights.state_tensors(model).values())
        return model, [tensors[index] for index in places]

    # What fills.py, mutants.py, selections.py and own_check.py stand on

    def drawn(self, seed, kind):
        """As InputDraws.drawn()."""
        return self._inputs.drawn(seed, kind)

    def draw_into(self, slot, seed, kind, change=lambda leaves: leaves):
        """Fills a slot's inputs with a draw, changed once more; returns how many tensors its kind
        changed. finish() waits for it.
        """
        slots = self.slots()
        leaves, changed = self.drawn(seed, kind)
        slots.store_inputs(slot, [value for _, value in change(leaves)])
        self._draw_kinds[slot] = kind
        return changed

    def finish(self):
        self._place.finish()

    @property
    def nan(self):
        return self._nan

    def kind_of(self, slot):
        return self._draw_kinds.get(slot, draws.ORDINARY)

    def run_anew(self, leaves):
        """Returns forward's outputs for these leaves, from the constructed state."""
        self._restorer.restore()
        return self._forward([self._given(value) for value in leaves])

    def in_float64(self, slot):
        """Returns forward's outputs for a slot's inputs in float64, with the present weights."""
        self._float64.refresh()
        return self._float64.whole(self.slots().leaves(slot))

    def _truth_of(self, leaves):
        """Yields parts of forward's outputs for these leaves in float64, or all of them natively
        without it.
        """
        given = [value for _, value in leaves]
        if not self._float64.works:
            yield self.run_anew(given)
            return
        self._float64.refresh()
        for _, outputs in self._float64.parts(given):
            yield outputs

    def _given(self, value):
        """Returns a value as forward gets it."""
        return self._place.copy(value) if self._changes.inputs else self._place.there(value)

    def in_double_tensors(self, doubles, leaves, saves_memory=False):
        """Returns forward's outputs for leaves in float64, from the constructed state, and the
        DoubleTensors; None: makes them. `saves_memory`: as in DoubleTensors.in_place().
        """
        self._restorer.restore()
        if doubles is None:
            doubles = float64.DoubleTensors(self._model, self._restorer.tensors())
        with doubles.in_place(saves_memory):
            return self._forward([self._place.double_copy(value) for value in leaves]), doubles

    def changed_state(self):
        """Returns the tensors of the module, by name, that forward changes."""
        every = weights.every_tensor(self._model)
        return {name: every[name] for name in self._changed_names}

    def given_to_check(self, slot, outputs):
        """Returns a slot's arguments as copies, the outputs beside them, and the module."""
        self._restorer.restore()
        inputs = self.slots().arguments(slot, self._place.copy)
        return inputs, [self._place.there(tensor) for tensor in outputs], self._model

    def weights(self):
        """Floating-point parameters and buffers by name, except those that forward changes."""
        return {
            name: tensor
            for name, tensor in weights.every_tensor(self._model).items()
            if tensor.dtype.is_floating_point and name not in self._changed_names
        }

    def _draw(self, args, _fd):
        seed, kind, slot, nudge, bits = args[:5]
        changed = self.draw_into(slot, seed, kind, lambda leaves: (
            draws.nudge_all(leaves, nudge, 2.0**-bits) if nudge else leaves
        ))
        self.finish()
        return changed, self._inputs.kept_signs() if kind == draws.SIGNS else 0

    def _evaluate(self, args, _fd):
        slot, precision = args[:2]
        slots = self.slots()
        if precision == 2:
            return (values.not_finite(slots.outputs(slot)),)
        try:
            if precision == 1:
                targets = slots.oracle_outputs(slot)
                for rows, outputs in self._float64.parts(slots.leaves(slot)):
                    part = [target if target is None else target[rows] for target in targets]
                    forward.copy_outputs(outputs, part, precision)
            else:
                self.evaluate_natively(slot)
            self._place.finish()
        except Failure as error:
            ordinary = self.kind_of(slot) == draws.ORDINARY
            if ordinary or (precision == 1 and error.number != failure.FLOAT64_UNSUPPORTED):
                raise
            raise Failure(failure.DRAW_MEANINGLESS, error.message) from error
        return ()

    def evaluate_natively(self, slot):
        """Fills the slot's outputs and returns them."""
        self._restorer.restore()
        slots = self.slots()
        targets = slots.outputs(slot)
        forward.copy_outputs(self._forward(slots.leaves(slot, self._given)), targets, 0)
        return targets

    def _blocks(self, _args, _fd):
        self._slots = None  # the judge may have changed the number of slots since the last time
        slots = self.slots()
        first = blocks.FirstFailure(
            self.path, failure.PROBLEM_FORWARD, failure.PROBLEM_OUTPUT, self._context.say
        )
        blocks.run_blocks(
            self._context.library,
            self._context.loop,
            slots,
            self._forwards(slots),
            self._changes.same,
            self._restorer.restore,
            first,
        )
        return first.count, first.number

    def _forwards(self, slots):
        """Returns what blocks call in each slot."""
        if self._copies is None:
            return [self._timed] * slots.count
        modules = self._copies.modules(slots.count)
        if self._compiled is None:
            return modules
        made = self._compiled.of(modules, lambda slot: slots.arguments(slot, self._place.copy))
        self._restorer.restore()
        return made

    def _estimate(self, args, fd):
        tree = problem.parse(self.path)
        settings = self._context.settings
        result = estimate.estimate(
            tree, self.path, settings.get("set", {}), args[0], settings
        )
        self._context.say(result.suggestion)
        written = wire.write_text(fd, estimate.account(result.need))
        return (*result.as_args(), written, result.need.truth if result.need else 0)

    def _profile(self, args, fd):
        if self._model is None:
            raise Failure(failure.ENVIRONMENT, "no problem is loaded")
        given = [self._place.there(value) for _, value in self._first_draw()]

        def call():
            self._restorer.restore()
            self._results([self._given(value) for value in given])

        return (wire.write_text(fd, profile.profile(call, args[0])),)

