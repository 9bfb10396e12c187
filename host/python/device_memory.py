"""Device memory that can be handed to another process, for tests where there is a CUDA device."""

import ctypes
import unittest

from fake_judge import POISON, Judge, Region, torch, values, wire  # noqa: F401


def cuda_is_there():
    return torch.cuda.is_available()


class _Properties(ctypes.Structure):
    """CUmemAllocationProp: pinned, exported as a POSIX descriptor, on a device."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("requested_handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("win32_meta_data", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


def allocate(size_bytes):
    """Returns (descriptor, bytes) of new device memory, rounded up to the device's granularity."""
    torch.zeros(1, device="cuda")  # a context
    driver = ctypes.CDLL("libcuda.so.1")
    properties = _Properties(type=1, requested_handle_types=1, location_type=1, location_id=0)
    granularity, handle, fd = ctypes.c_size_t(), ctypes.c_ulonglong(), ctypes.c_int(-1)
    where = ctypes.byref(properties)
    _check(driver.cuMemGetAllocationGranularity(ctypes.byref(granularity), where, 0))
    rounded = -(-size_bytes // granularity.value) * granularity.value
    _check(
        driver.cuMemCreate(
            ctypes.byref(handle), ctypes.c_size_t(rounded), where, ctypes.c_ulonglong(0)
        )
    )
    _check(driver.cuMemExportToShareableHandle(ctypes.byref(fd), handle, 1, ctypes.c_ulonglong(0)))
    _check(driver.cuMemRelease(handle))  # the descriptor keeps the memory
    return fd.value, rounded


def _check(result):
    if result:
        raise OSError(result, f"CUDA error {result}")


class DeviceRegion(wire.DeviceMapping):
    """Device memory that the judge has mapped, to be attached."""

    library = None

    def __init__(self, size_bytes):
        if DeviceRegion.library is None:
            DeviceRegion.library = wire.Library(wire.library_path())
        self.fd, rounded = allocate(size_bytes)
        super().__init__(DeviceRegion.library, self.fd, rounded)

    def fill(self, byte):
        self.part(0, self.size_bytes).fill_(byte)
        torch.cuda.synchronize()


class DeviceJudge(Judge):
    """A judge whose host's inputs, outputs and weights lie on the device."""

    def lay_out_like(self, other):
        """Copies plan, inputs and weights of a judge whose regions lie in host memory."""
        self.specs, self.plan = other.specs, other.plan
        plan_region = other.regions[wire.PLAN]
        self.request(wire.ATTACH, wire.PLAN, plan_region.size_bytes, 0, fd=plan_region.fd)
        for number, writable in ((wire.INPUTS, 0), (wire.OUTPUTS, 1), (wire.WEIGHTS, 0)):
            source = other.regions[number]
            region = DeviceRegion(source.size_bytes)
            region.fill(POISON)
            if number != wire.OUTPUTS:
                held = values.view(source, torch.uint8, (source.size_bytes,), 0)
                region.part(0, source.size_bytes).copy_(held)
                torch.cuda.synchronize()
            self.regions[number] = region
            self.request(wire.ATTACH, number, region.size_bytes, writable, 1, fd=region.fd)
        numbers = other.regions[wire.INPUTS]
        self.regions[wire.NUMBERS] = numbers
        self.request(wire.ATTACH, wire.NUMBERS, numbers.size_bytes, 0, fd=numbers.fd)


class DeviceOracle(Judge):
    """A judge whose host's module and weights lie on the device, and its slots in host memory."""

    def lay_out(self, slot_count, **keywords):
        super().lay_out(slot_count, **keywords)
        region = DeviceRegion(slot_count * self.plan.weights_stride)
        self.regions[wire.WEIGHTS] = region
        self.request(wire.ATTACH, wire.WEIGHTS, region.size_bytes, 1, 1, fd=region.fd)

    def store_weights(self):
        self.request(wire.STORE_WEIGHTS, 0)
        region, stride = self.regions[wire.WEIGHTS], self.plan.weights_stride
        for slot in range(1, self.plan.slot_count):
            region.part(slot * stride, stride).copy_(region.part(0, stride))
        torch.cuda.synchronize()


class DeviceHosts(unittest.TestCase):
    """An oracle, and hosts whose slots lie on the device, too."""

    @classmethod
    def setUpClass(cls):
        cls.oracle = DeviceOracle(settings={"device": "cuda"})

    @classmethod
    def tearDownClass(cls):
        cls.oracle.close()

    def describe(self, source, slots=2):
        self.oracle.load(source)
        self.oracle.lay_out(slots)
        self.oracle.store_weights()
        for slot in range(slots):
            self.oracle.draw(50 + slot, 0, slot)
            self.oracle.evaluate(slot, 0)

    def start(self, role, source, **settings):
        judge = DeviceJudge(role, settings={"device": "cuda", **settings})
        self.addCleanup(judge.close)
        name = "candidate" if role == "candidate" else "problem"
        judge.write(f"{name}/{name}.py", source)
        judge.write("candidate/init.pickle", self.oracle.record)
        if role == "reference":
            judge.load(source, brief=True)
        judge.lay_out_like(self.oracle)
        if role == "reference":
            judge.request(wire.STORE_WEIGHTS, 1)
        else:
            judge.request(wire.LOAD)
        return judge
