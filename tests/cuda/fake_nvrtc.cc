// SPDX-License-Identifier: Apache-2.0
// An NVRTC of another version, which knows nothing newer than sm_90 and compiles nothing: FI_FAKE_NVRTC_MINOR of
// CUDA 12.
#include <cstddef>
#include <cstdlib>

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  const char* set = std::getenv("FI_FAKE_NVRTC_MINOR");
  return *major = 12, *minor = set ? std::atoi(set) : 4, 0;
}
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_OF_THE_TEST"; }
int nvrtcGetNumSupportedArchs(int* n) { return *n = 2, 0; }
int nvrtcGetSupportedArchs(int* list) { return list[0] = 80, list[1] = 90, 0; }
int nvrtcCreateProgram(void** p, const char*, const char*, int, const char* const*, const char* const*) {
  return *p = nullptr, 0;
}
int nvrtcCompileProgram(void*, int, const char* const*) { return 6; }
int nvrtcDestroyProgram(void**) { return 0; }
int nvrtcGetProgramLogSize(void*, size_t* n) { return *n = 0, 0; }
int nvrtcGetProgramLog(void*, char*) { return 0; }
int nvrtcGetCUBINSize(void*, size_t* n) { return *n = 0, 0; }
int nvrtcGetCUBIN(void*, char*) { return 0; }
}
