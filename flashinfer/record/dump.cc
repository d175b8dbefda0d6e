// SPDX-License-Identifier: Apache-2.0
// Files and records of one call.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/version.h"
#include "flashinfer/op/call.h"
#include "flashinfer/record/format.h"
#include "flashinfer/record/group.h"
#include "flashinfer/record/machine.h"
#include "flashinfer/record/recorder.h"

namespace flashinfer::record {
namespace {

constexpr double kMegabyte = 1048576.0;

std::string two_decimals(double v) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", v);
  return text;
}

bool may_be_written(const op::Arg& a) {
  if (!a.field) return false;
  const op::Role r = a.field->role;
  return r == op::Role::kOut || r == op::Role::kInOut || r == op::Role::kPagedInOut || r == op::Role::kResult;
}

/// The capture of the current stream, when the call has a tensor on its GPU.
uint64_t capture_of(const CallValues& recorded) {
  for (const RecordedTensor& l : recorded.tensors)
    if (const Device d = l.tensor.view.device(); d.type == DeviceType::kCUDA)
      return cuda::why_no_device(d.index).empty() ? cuda::capture_id(d.index, Context::current().stream) : 0;
  return 0;
}

/// Inputs that share memory with something the call writes.
Json overwritten(const Dump& dump) {
  Json keys = Json::array();
  for (const RecordedTensor& in : dump.inputs.tensors) {
    if (!in.stored() || (in.role && std::string_view(in.role) == role_name(op::Role::kOut))) continue;
    const auto begin = [](const TensorView& v) { return reinterpret_cast<uintptr_t>(v.data()); };
    const TensorView& a = in.tensor.view;
    bool hit = false;
    for (const auto& [key, arg] : dump.written) {
      CallValues recorded;
      recorded.add(key, arg.value, nullptr);
      for (const RecordedTensor& l : recorded.tensors) {
        const TensorView& b = l.tensor.view;
        hit = hit || (a.numel() > 0 && b.numel() > 0 && begin(a) < begin(b) + static_cast<uintptr_t>(b.span_bytes()) &&
                      begin(b) < begin(a) + static_cast<uintptr_t>(a.span_bytes()));
      }
    }
    if (hit) keys.push_back(in.key);
  }
  return keys;
}

Json size_info(Json keys, Json output_keys, uint64_t input_bytes, const uint64_t* output_bytes) {
  Json info{{kInputTensorKeys, std::move(keys)},
            {kOutputTensorKeys, std::move(output_keys)},
            {"input_size_bytes", input_bytes},
            {"input_size_mb", static_cast<double>(input_bytes) / kMegabyte}};
  if (!output_bytes) return info;
  info["output_size_bytes"] = *output_bytes;
  info["output_size_mb"] = static_cast<double>(*output_bytes) / kMegabyte;
  info["total_size_bytes"] = input_bytes + *output_bytes;
  info["total_size_mb"] = static_cast<double>(input_bytes + *output_bytes) / kMegabyte;
  return info;
}

std::pair<std::string, std::string> type_and_message(const std::exception& e) {
  if (const auto* ours = dynamic_cast<const Error*>(&e)) return {std::string(name(ours->kind())), ours->message()};
  if (const auto* foreign = dynamic_cast<const ForeignError*>(&e)) return {foreign->type(), foreign->what()};
  if (dynamic_cast<const std::bad_alloc*>(&e)) return {"MemoryError", e.what()};
  return {"RuntimeError", e.what()};
}

}  // namespace

void Recorder::describe(op::Invocation& call, const std::vector<op::Arg>& args, Dump& dump) {
  dump.name = call.name;
  dump.module = call.module.empty() ? "<unknown>" : call.module;
  int64_t position = 0;
  for (const op::Arg& a : args) {
    if (a.how == op::Arg::kDefault) continue;
    const bool positional = a.how == op::Arg::kPositional;
    const std::string key = positional ? kArgPrefix + std::to_string(position++) : kKwargPrefix + a.name;
    if (positional) dump.arg_names.push_back(a.name);
    dump.inputs.add(key, a.value, a.field ? role_name(a.field->role) : nullptr, a.field && a.field->page_ids);
    if (may_be_written(a)) dump.written.emplace_back(key, a);
    const auto* object = a.value.as<op::ObjectValue>();
    if (object && object->object && a.field && a.field->role == op::Role::kSelf) {
      dump.self = object->object;
      dump.self_type = object->object->type;
      dump.state = object->object->state;
    }
  }
  if (dump.self && dump.state) add_state(dump.inputs, *dump.self->type, dump.state.get(), kPlanPrefix);
  if (call.op && call.op->is_collective) dump.group = group_of(args);
  dump.graph = capture_of(dump.inputs);
  if (dump.graph == 0 && use_pages()) find_used_pages(dump.inputs);  // a replay may use other pages than the capture
}

formats::WriteReport Recorder::write(Dump& dump, const std::string& folder, const char* stem,
                                     const CallValues& recorded) {
  std::vector<Tensor> keep;
  const std::vector<formats::NamedTensor> tensors = stored_tensors(recorded, keep);
  formats::WriteReport report;
  if (tensors.empty()) return report;
  const std::string base = folder + "/" + stem;
  if (chunks_) {
    const std::vector<int64_t> sizes = chunk_sizes(recorded);
    for (;;) {
      try {
        const auto used = chunks_->write(base + formats::kChunksEnding, tensors, sizes, &report);
        dump.packs.insert(dump.packs.end(), used.begin(), used.end());
        break;
      } catch (const formats::StoreFull&) {
        const std::lock_guard lock(mutex_);
        if (ring_.empty()) throw;
        evict_oldest();
      }
    }
  } else if (settings_.safetensors) {
    formats::write_safetensors(base + ".safetensors", tensors, &report);
  } else {
    formats::write_pt(base + ".pt", tensors, &report);
  }
  return report;
}

void Recorder::add_details(Dump& dump, const CallValues& recorded, const formats::WriteReport* report, Json& keys,
                           uint64_t* bytes) {
  size_t i = 0;
  for (const RecordedTensor& l : recorded.tensors) {
    std::string checksum;
    if (l.stored()) {
      if (report) checksum = formats::checksum_text(report->checksums.at(i));
      i += l.pages.empty() ? 1 : 2;
      keys.push_back(l.key);
    }
    dump.details[l.key] = details(l, dump.storages, checksum);
  }
  *bytes = recorded.bytes();
}

Json Recorder::record(const op::Invocation& call, const Dump& dump, const char* status, const Json& output_metadata,
                      const Json& output_keys, const uint64_t* output_bytes) const {
  Json r;
  r[kFunctionName] = dump.name;
  r[kModule] = dump.module;
  r[kCallSequence] = dump.call_sequence;
  r[kTimestamp] = dump.timestamp;
  r[kProcessId] = ::getpid();
  r[kInputMetadata] = dump.inputs.metadata;
  r[kOutputMetadata] = output_metadata;
  r[kTensorInfo] = size_info(dump.input_keys, output_keys, dump.input_bytes, output_bytes);
  r[kTensorDetails] = dump.details;
  r[kTensorFormat] = chunks_ ? kFormatChunks : settings_.safetensors ? kFormatSafetensors : kFormatTorch;
  r[kFunctionSignature] = call.signature();
  Json versions = Json::object();
  for (const auto& [name, version] : other_versions()) versions[name] = version;
  versions["flashinfer"] = build::version();
  versions["compiler"] = build::compiler();
  versions["os"] = os_name();
  r[kVersions] = std::move(versions);
  r[kExecutionStatus] = status;
  r[kGraphCapture] = dump.graph != 0;
  if (call.self_id != 0) r[kSelfId] = call.self_id;
  r[kDumpDir] = dump.path;
  // Keys of our own follow.
  r[kFormat] = kFormatVersion;
  r[kSequence] = call.sequence;
  r[kArgNames] = dump.arg_names;
  if (call.op) r[kOpVersion] = call.op->version;
  if (dump.self) {
    r[kSelfClass] = dump.self->class_name;
    r[kPlanned] = dump.self->planned;
  }
  r[kDepth] = call.depth;
  r[kWallTimeNs] = dump.wall_ns;
  r[kThreadId] = static_cast<int64_t>(::syscall(SYS_gettid));
  r[kHost] = host_name();
  if (const std::string text = rank(); !text.empty()) r[kRank] = text;
  if (!dump.group.is_null()) r[kGroup] = dump.group;
  const Context& context = Context::current();
  const Device device = call.op && call.block ? op::device_of(*call.op, call.block) : context.device;
  const Cuda& gpu = device.type == DeviceType::kCUDA ? cuda() : Cuda{};
  const auto index = static_cast<size_t>(device.index);
  r[kDeviceModel] = index < gpu.gpus.size() ? gpu.gpus[index].name : cpu_model();
  if (!gpu.driver.empty()) r[kDriver] = gpu.driver;
  r[kStream] = reinterpret_cast<uintptr_t>(context.stream);
  r[kGitCommit] = build::commit();
  if (call.start_ns) {
    r[kStartNs] = call.start_ns;
    if (call.end_ns) {
      r[kEndNs] = call.end_ns;
      r[kDurationUs] = static_cast<double>(call.end_ns - call.start_ns) / 1000.0;
    }
  }
  if (call.candidate) r[kBackend] = call.candidate;
  if (!call.config.empty()) r[kConfig] = call.config;
  if (dump.graph != 0) r[kOverwritten] = overwritten(dump);
  return r;
}

std::shared_ptr<Dump> Recorder::before(op::Invocation& call, const std::vector<op::Arg>& args) {
  become_own();
  auto dump = std::make_shared<Dump>();
  describe(call, args, *dump);
  const bool captured = dump->graph != 0;
  if (!admit(dump->name, captured ? 0 : dump->inputs.bytes(), *dump)) return nullptr;
  try {
    formats::WriteReport report;
    dump->storages.add(dump->inputs);
    if (!captured) gather_used_pages(dump->inputs), bring_to_host(dump->inputs);
    make_folder(*dump);
    if (!captured) report = write(*dump, dump->path, kInputsStem, dump->inputs);
    add_details(*dump, dump->inputs, captured ? nullptr : &report, dump->input_keys, &dump->input_bytes);
    dump->record = record(call, *dump, captured ? kPendingFlush : kInputsSaved, Json::object(), Json::array(), nullptr);
    append(dump->path, dump->record);
    if (captured) defer(*dump, false, dump->inputs);
    const std::lock_guard lock(mutex_);
    dump->disk_bytes = chunks_ ? 0 : report.tensor_bytes;
    bytes_ += dump->disk_bytes;
    for (RecordedTensor& l : dump->inputs.tensors)
      l.used = l.host = Tensor();  // only the page numbers are needed after the call
    warned_.erase("inputs");
    const uint64_t shown = settings_.keep_last ? ring_.size() + 1 : admitted_;
    sink_.write(str("Dumped inputs to: ", dump->path,
                    " (size: ", two_decimals(static_cast<double>(dump->input_bytes) / kMegabyte), " MB, total: ", shown,
                    "/", settings_.max_count, captured ? " dumps, graph-deferred)\n" : " dumps)\n"));
    sink_.write(str("Inputs dumped to: ", dump->path, "\n"));
    return dump;
  } catch (const formats::StoreFull&) {
    abandon(*dump);
    const std::lock_guard lock(mutex_);
    full_ = true;
    ++totals_.skipped;
    --totals_.lost;
    warn_once(warned_, "size",
              str("Dump size limit reached (", settings_.max_size_gb, " GB). Skipping dump for ", dump->name,
                  ". Increase FLASHINFER_DUMP_MAX_SIZE_GB if needed."));
  } catch (const std::exception& e) {
    abandon(*dump);
    const std::lock_guard lock(mutex_);
    warn_once(warned_, "inputs", str("[DUMP ERROR (inputs) in ", dump->name, "]: ", type_and_message(e).second));
  }
  return nullptr;
}

/// StoreFull when `bytes` more would exceed the limit and nothing can be evicted for them.
void Recorder::check_room(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (settings_.keep_last)
    make_room(chunks_ ? 0 : bytes);
  else if (!chunks_ && bytes_ + bytes > cap())
    throw formats::StoreFull();
}

void Recorder::after(op::Invocation& call, Dump& dump, const op::Value& result) {
  CallValues out;
  out.add_result(result);
  const size_t results = out.tensors.size();
  for (const auto& [key, arg] : dump.written) {
    CallValues recorded;
    recorded.add(std::string(kAfterPrefix) + key, arg.value, role_name(arg.field->role));
    for (RecordedTensor& l : recorded.tensors) {
      for (size_t i = 0; i < results; ++i)
        if (out.tensors[i].tensor.view.same_elements(l.tensor.view)) l.same_as = out.tensors[i].key;
      out.tensors.push_back(std::move(l));
    }
  }
  if (dump.self && dump.self->state != dump.state && dump.self->state)
    add_state(out, *dump.self->type, dump.self->state.get(), std::string(kAfterPrefix) + kPlanPrefix);
  copy_used_pages(out, dump.inputs, kAfterPrefix);
  const bool captured = dump.graph != 0;
  uint64_t bytes = 0;
  Json keys = Json::array();
  try {
    formats::WriteReport report;
    try {
      dump.storages.add(out);
      if (!captured) {
        check_room(out.bytes());
        gather_used_pages(out), bring_to_host(out);
        report = write(dump, dump.path, kOutputsStem, out);
      }
      add_details(dump, out, captured ? nullptr : &report, keys, &bytes);
    } catch (const std::exception& e) {
      // The inputs are stored and the call completed, which is still worth a record.
      Json r = record(call, dump, kCompleted, out.metadata, Json::array(), &bytes);
      r[kOutputsLost] = type_and_message(e).second;
      append(dump.path, r);
      throw;
    }
    dump.record = record(call, dump, captured ? kPendingFlush : kCompleted, out.metadata, keys, &bytes);
    append(dump.path, dump.record);
    if (captured) defer(dump, true, std::move(out));
    finish(dump, chunks_ ? 0 : report.tensor_bytes);
    const std::lock_guard lock(mutex_);
    warned_.erase("outputs");
    const uint64_t total = dump.input_bytes + bytes;
    sink_.write(str("Dumped outputs to: ", dump.path,
                    " (output size: ", two_decimals(static_cast<double>(bytes) / kMegabyte),
                    " MB, total dump size: ", two_decimals(static_cast<double>(total) / kMegabyte),
                    captured ? " MB, graph-deferred)\n" : " MB)\n"));
    sink_.write(str("Outputs dumped to: ", dump.path, "\n"));
  } catch (const std::exception& e) {
    finish(dump, 0);
    const std::lock_guard lock(mutex_);
    warn_once(warned_, "outputs", str("[DUMP ERROR (outputs) in ", dump.name, "]: ", type_and_message(e).second));
  }
}

void Recorder::failed(op::Invocation& call, Dump& dump, const std::exception& error) try {
  Json r = record(call, dump, kFailed, Json::object(), Json::array(), nullptr);
  const auto [type, message] = type_and_message(error);
  r[kError] = {{kErrorType, type}, {kErrorMessage, message}};
  if (dump.graph != 0) {
    const std::lock_guard lock(graph_mutex_);
    std::erase_if(deferred_, [&](const Deferred& d) { return d.dump.get() == &dump; });
  }
  append(dump.path, r);
  finish(dump, 0);
} catch (const std::exception& e) {
  finish(dump, 0);
  const std::lock_guard lock(mutex_);
  warn_once(warned_, "outputs", str("[DUMP ERROR (outputs) in ", dump.name, "]: ", type_and_message(e).second));
}

}  // namespace flashinfer::record
