// SPDX-License-Identifier: Apache-2.0
// The fake driver: streams, events, captures and graphs.
#include "fake_machine.h"

using namespace fake;
using namespace flashinfer::cuda;

extern "C" {
int cuStreamCreate(Handle* out, unsigned) {
  ENTER();
  NEEDS_CONTEXT();
  auto s = std::make_unique<Stream>();
  s->number = ++machine().numbers;
  *out = s.get();
  machine().streams[*out] = std::move(s);
  return 0;
}
int cuStreamDestroy_v2(Handle h) {
  const Locked locked;
  Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  drain(*s);
  machine().streams.erase(h);
  return 0;
}
int cuStreamSynchronize(Handle h) {
  ENTER();
  Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  if (s->capturing) return s->invalid = true, int{kCaptureUnsupported};
  if (forbidden_by_capture()) return kCaptureUnsupported;
  drain(*s);
  return machine().sticky;
}
int cuStreamWaitEvent(Handle h, Handle event, unsigned) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  const int upto = e->recorded;
  return enqueue(h, {"wait", [e, upto] {
                       if (e->stream && e->done < upto) drain(*e->stream, [&] { return e->done >= upto; });
                     }});
}
int cuStreamIsCapturing(Handle h, int* state) {
  ENTER();
  const Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  *state = s->capturing ? 1 : 0;
  return 0;
}
int cuStreamGetCaptureInfo_v2(Handle h, int* state, unsigned long long* id, Handle*, const Handle**, size_t*) {
  ENTER();
  const Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  *state = s->capturing ? 1 : 0;
  if (id) *id = s->capturing;
  return 0;
}
int cuCtxSynchronize() {
  ENTER();
  NEEDS_CONTEXT();
  for (auto& [h, s] : machine().streams)
    if (s->capturing) return s->invalid = true, int{kCaptureUnsupported};
  for (auto& [h, s] : machine().streams) drain(*s);
  return machine().sticky;
}
int cuPointerGetAttribute(void* value, int attribute, Address p) {
  ENTER();
  const auto it = find_block(machine().blocks, host(p), 1);
  if (it == machine().blocks.end() || attribute != 7) return kInvalidValue;
  std::memcpy(value, &it->second.id, 8);
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  const Locked locked;
  NEEDS_CONTEXT();
  return std::swap(*mode, machine().mode), 0;
}
int cuEventCreate(Handle* out, unsigned) {
  ENTER();
  NEEDS_CONTEXT();
  auto* e = new Event;
  machine().events.insert(e);
  *out = e;
  return 0;
}
int cuEventDestroy_v2(Handle) { return 0; }  // streams may still wait for it: reset() deletes it
int cuEventRecord(Handle event, Handle stream) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  e->stream = stream_of(stream);
  const int number = ++e->recorded;
  return enqueue(stream, {"event", [e, number] { e->done = number, e->at_ms = machine().gpu.clock_ms; }});
}
int cuEventQuery(Handle h) {
  ENTER();
  if (forbidden_by_capture()) return kCaptureUnsupported;
  auto* e = static_cast<Event*>(h);
  if (e->done >= e->recorded) return 0;
  drain(*e->stream, [e] { return e->done >= e->recorded; });  // done by the next question
  return kNotReady;
}
int cuEventSynchronize(Handle h) {
  ENTER();
  auto* e = static_cast<Event*>(h);
  if (e->stream == nullptr) return 0;
  if (e->stream->capturing) return e->stream->invalid = true, int{kCaptureUnsupported};
  if (forbidden_by_capture()) return kCaptureUnsupported;
  drain(*e->stream, [e] { return e->done >= e->recorded; });
  return machine().sticky;
}
int cuEventElapsedTime(float* ms, Handle begin, Handle end) {
  const Locked locked;
  *ms = 1.5f + static_cast<float>(static_cast<Event*>(end)->at_ms - static_cast<Event*>(begin)->at_ms);
  return 0;
}
// Graphs, for programs that make them with the driver's functions; a graph's handle is the number of its capture.
int cuStreamBeginCapture_v2(Handle h, int) {
  ENTER();
  fake_gpu()->begin_capture(h);
  return 0;
}
int cuStreamEndCapture(Handle h, Handle* graph) {
  ENTER();
  *graph = reinterpret_cast<Handle>(machine().captures);
  return fake_gpu()->end_capture(h) < 0 ? int{kCaptureInvalidated} : 0;
}
int cuGraphInstantiateWithFlags(Handle* exec, Handle graph, unsigned long long) { return *exec = graph, 0; }
int cuGraphDestroy(Handle) { return 0; }
int cuGraphExecDestroy(Handle) { return 0; }
int cuGraphLaunch(Handle exec, Handle h) {
  ENTER();
  fake_gpu()->launch_graph(reinterpret_cast<uint64_t>(exec), h);
  return 0;
}

}  // extern "C"
