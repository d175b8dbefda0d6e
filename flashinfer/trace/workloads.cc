// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/trace/workloads.h"

#include <algorithm>
#include <map>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/formats/pt.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/replay/inputs.h"
#include "flashinfer/replay/session.h"
#include "flashinfer/trace/trace.h"

namespace flashinfer::trace {
namespace {

/// FNV-1a: names of workloads, the same in every run.
uint64_t hash_of(std::string_view text, uint64_t h = 0xcbf29ce484222325) {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}
std::string uuid_of(const std::string& text) {
  char s[40];
  const uint64_t a = hash_of(text), b = hash_of(text, 0x9e3779b97f4a7c15);
  std::snprintf(s, sizeof s, "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(a >> 32),
                static_cast<unsigned>(a >> 16) & 0xffff, static_cast<unsigned>(a) & 0xffff,
                static_cast<unsigned>(b >> 48), static_cast<unsigned long long>(b & 0xffffffffffff));
  return s;
}

bool is_index(DType t) { return t == DType::kI32 || t == DType::kI64; }

/// One recorded call, with its arguments on the host.
struct Recorded {
  Recorded(const replay::Session& session, const replay::Call& call, const op::Op& o)
      : op(o), inputs(session, call, o, kCpu), block(o) {
    block.bind(inputs.passed);
  }

  /// The argument, or the member of the receiver's plan, of that name.
  op::Value value(const std::string& name) const {
    if (const op::Field* f = op::find_field(op, name))
      if (op::Value v = f->get(block.data()); !v.is_none()) return v;
    if (inputs.self && inputs.self->state)
      for (const op::Field& f : inputs.self->type->fields)
        if (f.name == name) return f.get(inputs.self->state.get());
    return {};
  }

  const op::Op& op;
  replay::Inputs inputs;
  op::Block block;
};

/// The extents of the variable axes, from the definition's own shapes.
template <class ValueOf>  // of an argument, by name
Json extents(const ValueOf& value_of, const Template& t, const Json& definition) {
  Json axes = Json::object();
  for (const auto& [axis, entry] : definition["axes"].items()) {
    if (entry["type"] != "var") continue;
    for (const Item& item : t.inputs) {
      if (!definition["inputs"].contains(item.key)) continue;
      const Json& shape = definition["inputs"][item.key]["shape"];
      const auto fact = passed(item, {{item.param, fact_of(value_of(item.param))}});
      if (shape.is_null() || !fact || fact->shape.size() != shape.size()) continue;
      const auto at = std::find(shape.begin(), shape.end(), axis);
      if (at == shape.end()) continue;
      axes[axis] = fact->shape[static_cast<size_t>(at - shape.begin())];
      break;
    }
  }
  return axes;
}

Json scalar(const op::Value& v) {
  if (const auto* b = v.as<bool>()) return {{"type", "scalar"}, {"value", *b}};
  if (const auto* i = v.as<int64_t>()) return {{"type", "scalar"}, {"value", *i}};
  if (const auto* d = v.as<double>()) return {{"type", "scalar"}, {"value", *d}};
  return {{"type", "random"}};
}

class Writer {
 public:
  Writer(const std::filesystem::path& out, bool dense) : out_(out), dense_(dense) {}

  DataSet set;

  void add(const Recorded& call) {
    const Facts facts = facts_of(call.op, call.block.data());
    const op::TraceEntry* entry = choose(call.op, facts);
    if (!entry) return note(call, "has no definition");
    const Template open = make_template(call.op, *entry);
    Json definition = define(open, facts, {.strict = true, .block = call.block.data()});
    if (const auto wrong = problems(definition); !wrong.empty()) return note(call, wrong[0]);
    name(definition);
    const Facts all = with_state(open, facts);
    const Template t = resolved(with_unlisted(open, all), all);
    add_workload(call, t, definition);
  }

  void finish() {
    for (const auto& [file, lines] : lines_) {
      fs::make_dirs(file.parent_path());
      fs::write_atomic(file, lines, 0644);
    }
    set.definitions = static_cast<int>(written_.size());
  }

 private:
  void note(const Recorded& call, const std::string& why) {
    const std::string text = str(call.op.name, ": ", why);
    if (std::ranges::find(set.notes, text) == set.notes.end()) set.notes.push_back(text);
  }

  /// One definition a name: calls that differ in what the name does not tell (element types, arguments passed) get a
  /// name with a hash.
  void name(Json& definition) {
    std::string name = definition["name"];
    const std::string text = file_text(definition);
    if (const auto it = written_.find(name); it != written_.end() && it->second != text) {
      char suffix[20];
      std::snprintf(suffix, sizeof suffix, "_%08x", static_cast<unsigned>(hash_of(text)));
      definition["name"] = name += suffix;
    }
    if (!written_.try_emplace(name, text).second) return;
    write(definition, (out_ / "definitions" / definition["op_type"].get<std::string>()).string());
  }

  void add_workload(const Recorded& call, const Template& t, const Json& definition) {
    const std::string name = definition["name"], type = definition["op_type"];
    const Json axes = extents([&](const std::string& n) { return call.value(n); }, t, definition);
    const std::string uuid = uuid_of(name + axes.dump());
    if (!seen_.insert(uuid).second) return;
    const auto blob = std::filesystem::path("blob") / "workloads" / type / name / (name + "_" + uuid + ".safetensors");
    Json inputs = Json::object();
    std::vector<formats::NamedTensor> tensors;
    for (const Item& item : t.inputs) {
      if (!definition["inputs"].contains(item.key)) continue;
      inputs[item.key] = input(call, item, blob.string(), tensors);
    }
    if (!tensors.empty()) {
      fs::make_dirs((out_ / blob).parent_path());
      formats::write_safetensors(out_ / blob, tensors);
    }
    const Json line = {{"definition", name},
                       {"workload", {{"uuid", uuid}, {"axes", axes}, {"inputs", inputs}}},
                       {"solution", nullptr},
                       {"evaluation", nullptr}};
    lines_[out_ / "workloads" / type / (name + ".jsonl")] += formats::dump_json(line) + "\n";
    ++set.workloads;
  }

  Json input(const Recorded& call, const Item& item, const std::string& blob,
             std::vector<formats::NamedTensor>& tensors) {
    op::Value v = call.value(item.param);
    if (const auto* items = op::sequence_items(v); items && item.element >= 0)
      v = op::Value((*items)[static_cast<size_t>(item.element)]);
    const TensorView* tensor = v.tensor();
    if (!tensor) return scalar(v);
    if (!(dense_ || is_index(tensor->dtype())) || (item.element >= 0 && item.paged && !dense_))
      return {{"type", "random"}};
    tensors.push_back({item.key, *tensor});
    return {{"type", "safetensors"}, {"path", blob}, {"tensor_key", item.key}};
  }

  std::filesystem::path out_;
  bool dense_;
  std::map<std::string, std::string> written_;
  std::set<std::string> seen_;
  std::map<std::filesystem::path, std::string> lines_;
};

}  // namespace

DataSet write_workloads(const std::filesystem::path& recording, const std::filesystem::path& out, bool dense) {
  const replay::Session session = replay::open_session(recording);
  Writer writer(out, dense);
  for (size_t i = 0; i < session.calls.size(); ++i) {
    const replay::Call call = session.read(i);
    ++writer.set.calls;
    const op::Op* op = op::find_op(call.function());
    if (!op || !call.error.empty()) {
      writer.set.notes.push_back(str(call.function(), ": ", op ? call.error : "no function of this library"));
      continue;
    }
    try {
      writer.add(Recorded(session, call, *op));
    } catch (const std::exception& e) {
      writer.set.notes.push_back(str(call.function(), ": ", e.what()));
    }
  }
  writer.finish();
  return writer.set;
}

Described describe(const op::Op& op, const void* block) {
  Described d;
  const Facts facts = facts_of(op, block);
  const op::TraceEntry* entry = choose(op, facts);
  if (!entry || !entry->op_type) return {.why = "has no definition"};
  const Template open = make_template(op, *entry);
  d.definition = define(open, facts, {.strict = true, .block = block});
  if (const auto wrong = problems(d.definition); !wrong.empty()) return {.why = wrong[0]};
  const Facts all = with_state(open, facts);
  const Template t = resolved(with_unlisted(open, all), all);
  const auto value_of = [&](const std::string& name) {
    const op::Field* f = op::find_field(op, name);
    return f ? f->get(block) : op::Value();
  };
  const Json axes = extents(value_of, t, d.definition);
  Json inputs = Json::object();
  for (const Item& item : t.inputs)
    if (d.definition["inputs"].contains(item.key)) inputs[item.key] = scalar(value_of(item.param));
  const std::string uuid = uuid_of(d.definition["name"].get<std::string>() + axes.dump());
  d.workload = {{"uuid", uuid}, {"axes", axes}, {"inputs", inputs}};
  return d;
}

}  // namespace flashinfer::trace
