#include "calls.h"

#include <errno.h>
#include <sys/mman.h>

#include "faults.h"

namespace assay::native {
namespace {

using wire::ArgumentSpec;
using wire::DType;
using wire::Kind;
using wire::Plan;
using wire::Role;

DLDataType DLPackType(DType dtype) {
  const uint8_t bits = static_cast<uint8_t>(8 * wire::ElementBytes(dtype));
  switch (dtype) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
      return {kDLFloat, bits, 1};
    case DType::kBFloat16:
      return {kDLBfloat, bits, 1};
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
      return {kDLInt, bits, 1};
    case DType::kUInt8:
      return {kDLUInt, bits, 1};
    case DType::kBool:
      return {ASSAY_DLPACK_BOOL, bits, 1};
    case DType::kFloat8E4M3:
      return {ASSAY_DLPACK_FLOAT8_E4M3, bits, 1};
    case DType::kFloat8E5M2:
      return {ASSAY_DLPACK_FLOAT8_E5M2, bits, 1};
  }
  return {kDLOpaqueHandle, bits, 1};
}

}  // namespace

bool Calls::Prepare(const Plan& plan, const Regions& regions, void* stream) {
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  *this = Calls();
  const size_t count = wire::PassedCount(plan);
  argument_stride_ = static_cast<uint32_t>(count) + (stream != nullptr ? 1 : 0);
  stream_ = stream;
  const size_t cells = count * plan.slot_count;  // at most 2^31 by PlanIsSound: no overflow below
  const size_t arguments_bytes =
      (size_t{argument_stride_} * plan.slot_count * sizeof(AssayArgument) + 63) / 64 * 64;
  const size_t tensors_bytes = (cells * sizeof(DLTensor) + 63) / 64 * 64;
  const size_t shapes_bytes = count * 2 * wire::kRankMax * sizeof(int64_t);
  const size_t bytes = arguments_bytes + tensors_bytes + shapes_bytes + count * sizeof(Scalar);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<unsigned char*>(memory);
  memory_bytes_ = bytes;
  slot_count_ = plan.slot_count;
  argument_count_ = static_cast<uint32_t>(count);
  arguments_ = reinterpret_cast<AssayArgument*>(memory_);
  tensors_ = reinterpret_cast<DLTensor*>(memory_ + arguments_bytes);
  shapes_ = reinterpret_cast<int64_t*>(memory_ + arguments_bytes + tensors_bytes);
  scalars_ = reinterpret_cast<Scalar*>(memory_ + arguments_bytes + tensors_bytes + shapes_bytes);

  FillShapes(plan);
  for (uint32_t i = 0; i < argument_count_; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.kind == Kind::kTensor) continue;
    scalars_[scalar_count_++] = {AddressOf(argument, plan, regions, 0), plan.input_stride, i};
  }
  for (uint32_t slot = 0; slot < slot_count_; ++slot) FillSlot(plan, regions, slot);
  return true;
}

void Calls::FillShapes(const Plan& plan) {
  for (uint32_t i = 0; i < argument_count_; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.kind != Kind::kTensor) continue;
    int64_t* shape = shapes_ + size_t{i} * 2 * wire::kRankMax;
    int64_t* strides = shape + wire::kRankMax;
    int64_t stride = 1;
    for (uint32_t axis = argument.rank; axis-- > 0;) {
      shape[axis] = argument.shape[axis];
      strides[axis] = stride;
      // An axis of 0 elements has no meaningful stride outside of it; 1 keeps the products from
      // overflowing.
      stride *= shape[axis] > 0 ? shape[axis] : 1;
    }
  }
}

void Calls::FillSlot(const Plan& plan, const Regions& regions, uint32_t slot) {
  AssayArgument* arguments = arguments_ + size_t{slot} * argument_stride_;
  if (stream_ != nullptr) arguments[argument_count_].stream = stream_;
  DLTensor* tensors = tensors_ + size_t{slot} * argument_count_;
  for (uint32_t i = 0; i < argument_count_; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.kind != Kind::kTensor) continue;
    DLTensor& tensor = tensors[i];
    tensor.data = AddressOf(argument, plan, regions, slot);
    const bool on_device = regions[wire::Region::kOutputs].on_device;
    tensor.device = {on_device ? kDLCUDA : kDLCPU, 0};
    tensor.ndim = static_cast<int>(argument.rank);
    tensor.dtype = DLPackType(argument.dtype);
    tensor.shape = shapes_ + size_t{i} * 2 * wire::kRankMax;
    tensor.strides = tensor.shape + wire::kRankMax;
    tensor.byte_offset = 0;
    arguments[i].tensor = &tensor;
  }
}

void Calls::Touch() const {
  for (size_t at = 0; at < memory_bytes_; at += 64)
    static_cast<void>(static_cast<volatile unsigned char*>(memory_)[at]);
}

void RunBlocks(wire::BlockLoop& loop, const AssayKernel& kernel, const Calls& calls) {
  FaultContext& fault = TheFaultContext();
  const uint32_t slot_count = calls.slot_count();
  while (wire::AwaitArmed(loop)) {
    calls.Touch();
    wire::AwaitGo(loop);
    for (uint32_t i = 0; i < loop.call_count; ++i) {
      const uint32_t slot = loop.order[i];
      if (slot >= slot_count)
        continue;  // a bug of the judge's, which shows as outputs never written
      fault.slot = slot;
      fault.call = i;
      calls.Run(kernel, slot);
    }
    fault.call = kNoCall;
    wire::SayDone(loop, 0);
  }
}

}  // namespace assay::native
