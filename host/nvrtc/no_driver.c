// Stands in for the driver's library beside NVRTC, which opens libcuda.so.1 where it finds it, for
// nothing in a sandbox that has no device. By this name (the linker gives it) it is there already,
// with nothing in it, and NVRTC compiles as on a machine without a driver.
typedef int NothingIsHere;
