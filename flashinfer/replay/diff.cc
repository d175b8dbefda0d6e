// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/diff.h"

#include <algorithm>
#include <map>

#include "flashinfer/core/check.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/encode.h"
#include "flashinfer/record/format.h"

namespace flashinfer::replay {
namespace {

constexpr size_t kReach = 200;  // calls that one recording may have alone before the recordings agree again

/// Drops what differs from process to process: addresses in texts, ids of objects, descriptions of tensors.
Json comparable(const Json& j) {
  if (!j.is_structured()) return j;
  Json out = j.is_array() ? Json::array() : Json::object();
  if (j.is_array()) {
    for (const Json& x : j) out.push_back(comparable(x));
    return out;
  }
  const std::string type = string_of(j, record::kType);
  const bool opaque = j.contains(record::kObjectId) || type == record::kTypeTensor ||
                      string_of(j, record::kRepr).find(" object at 0x") != std::string::npos;
  if (opaque) return Json(type);
  for (const auto& [key, value] : j.items()) out[key] = comparable(value);
  return out;
}

bool is_output(std::string_view key) {
  return key.starts_with(record::kResult) || key.starts_with(record::kAfterPrefix);
}

/// Workspaces, and `out` arguments before the call, hold nothing that means something.
bool has_content(std::string_view key, const Json& details) {
  return string_of(details, record::kStored) != record::kStoredNothing &&
         (is_output(key) || string_of(details, record::kRole) != "out");
}

class Comparer {
 public:
  Comparer(const Session& first, const Call& a, const Session& second, const Call& b, const Tolerances& tolerances)
      : first_(first), second_(second), a_(a), b_(b), tolerances_(tolerances) {}

  CallDiff run() {
    d_.inputs = side(record::kInputsStem, false, record::kInputMetadata);
    const std::string x = string_of(a_.record, record::kExecutionStatus),
                      y = string_of(b_.record, record::kExecutionStatus);
    d_.outputs = side(record::kOutputsStem, true, record::kOutputMetadata);
    if (x != y) {
      d_.outputs = Agreement::kDiffers;
      note(str("the first is ", x.empty() ? "unreadable" : x, ", the second ", y.empty() ? "unreadable" : y));
    }
    return std::move(d_);
  }

 private:
  using Stored = std::map<std::string, Tensor, std::less<>>;

  void note(const std::string& text) { d_.note += (d_.note.empty() ? "" : "; ") + text; }

  static Stored load(const Session& s, const Call& c, const char* stem) {
    Stored out;
    for (auto& t : load_tensors(s, c.folder, stem, object_of(c.record, record::kTensorDetails)))
      out[t.key] = std::move(t.tensor);
    return out;
  }

  Agreement side(const char* stem, bool outputs, const char* values) {
    Agreement result = Agreement::kNotKnown;
    const auto found = [&](Agreement a) {
      if (result == Agreement::kNotKnown || (a != Agreement::kNotKnown && a > result)) result = a;
    };
    try {
      tensors(stem, outputs, found);
    } catch (const Error& e) {
      note(e.message());
      return Agreement::kNotKnown;
    } catch (const std::exception& e) {
      note(e.what());
      return Agreement::kNotKnown;
    }
    plain(object_of(a_.record, values), object_of(b_.record, values), found);
    return result;
  }

  template <class Found>
  void tensors(const char* stem, bool outputs, Found found) {
    const Json &x = object_of(a_.record, record::kTensorDetails), &y = object_of(b_.record, record::kTensorDetails);
    std::vector<std::string> changed;
    for (const auto& [key, details] : x.items()) {
      if (is_output(key) != outputs || !has_content(key, details) || others_write(key, details)) continue;
      const std::string sum = string_of(details, record::kChecksum);
      const Json& other = object_of(y, key.c_str());
      if (!sum.empty() && sum == string_of(other, record::kChecksum) &&
          details.value(record::kDType, "") == other.value(record::kDType, "") &&
          details.value(record::kShape, Json()) == other.value(record::kShape, Json()))
        found(Agreement::kEqual);
      else
        changed.push_back(key);
    }
    for (const auto& [key, details] : y.items())
      if (is_output(key) == outputs && !x.contains(key) && has_content(key, details)) changed.push_back(key);
    if (changed.empty()) return;
    const Stored have = load(first_, a_, stem), want = load(second_, b_, stem);
    for (const std::string& key : changed) tensor(key, have, want, found);
  }

  /// Before the call, memory that other ranks write to in the same call, and may have begun to.
  bool others_write(const std::string& key, const Json& details) const {
    const Json& workspace = object_of(object_of(a_.record, record::kGroup), record::kGroupWorkspace);
    const Json& values = object_of(a_.record, record::kInputMetadata);
    if (!workspace.contains(record::kWindowBytes) || is_output(key) ||
        !values.contains(str(record::kKwargPrefix, record::kGroupCall)) ||
        string_of(details, record::kRole) != record::role_name(op::Role::kInOut))
      return false;
    const std::string memory = key_of(a_, string_of(workspace, record::kArgument));
    return integer_of(details, record::kStorageId, -1) ==
           integer_of(object_of(object_of(a_.record, record::kTensorDetails), memory.c_str()), record::kStorageId, -2);
  }

  template <class Found>
  void tensor(const std::string& key, const Stored& have, const Stored& want, Found found) {
    const auto a = have.find(key), b = want.find(key);
    if (a == have.end() && b == want.end()) return;  // an alias of another key
    if (a == have.end() || b == want.end()) {
      found(Agreement::kDiffers);
      Difference d;
      d.key = key;
      d.text = str(key, " is recorded only in the ", a == have.end() ? "second" : "first", " recording");
      d_.differences.push_back(std::move(d));
      return;
    }
    Largest largest;
    auto d = compare_tensors(key, a->second.view(), b->second.view(), tolerances_, &largest);
    d_.max_abs = std::max(d_.max_abs, largest.abs), d_.max_rel = std::max(d_.max_rel, largest.rel);
    found(d ? Agreement::kDiffers : largest.abs > 0 ? Agreement::kClose : Agreement::kEqual);
    if (d) d_.differences.push_back(std::move(*d));
  }

  /// A group's name, or a workspace's id: each run of a program may have others.
  bool names_group(const std::string& key) const {
    if (!a_.record.contains(record::kGroup)) return false;
    for (const char* member : {record::kStateGroup, record::kStateId})
      if (key == str(record::kAfterPrefix, record::kPlanPrefix, member)) return true;
    if (key == str(record::kKwargPrefix, record::kStateGroup)) return true;
    const auto names = a_.record.find(record::kArgNames);
    if (names == a_.record.end() || !names->is_array()) return false;
    for (size_t i = 0; i < names->size(); ++i)
      if ((*names)[i] == record::kStateGroup && key == str(record::kArgPrefix, i)) return true;
    return false;
  }

  template <class Found>
  void plain(const Json& x, const Json& y, Found found) {
    for (const auto& [key, value] : x.items()) {
      const auto other = y.find(key);
      if (other != y.end() && comparable(value) == comparable(*other)) {
        if (!value.is_null()) found(Agreement::kEqual);
        continue;
      }
      if (other != y.end() && names_group(key)) continue;
      found(Agreement::kDiffers);
      Difference d;
      d.key = key;
      d.text = str(key, " is ", formats::dump_json(value), " in the first recording and ",
                   other == y.end() ? "absent" : formats::dump_json(*other), " in the second");
      d_.differences.push_back(std::move(d));
    }
    for (const auto& [key, value] : y.items()) {
      if (x.contains(key)) continue;
      found(Agreement::kDiffers);
      Difference d;
      d.key = key;
      d.text = str(key, " is absent in the first recording and ", formats::dump_json(value), " in the second");
      d_.differences.push_back(std::move(d));
    }
  }

  const Session &first_, &second_;
  const Call &a_, &b_;
  const Tolerances& tolerances_;
  CallDiff d_;
};

/// The nearest (i + x, j + y) from which two calls in a row agree, else one; false when there is none within reach.
bool resume(const std::vector<std::string>& a, const std::vector<std::string>& b, size_t& i, size_t& j) {
  for (const size_t run : {2, 1}) {
    for (size_t apart = 1; apart <= kReach; ++apart) {
      for (size_t x = 0; x <= apart; ++x) {
        const size_t p = i + x, q = j + (apart - x);
        if (p >= a.size() || q >= b.size() || a[p] != b[q]) continue;
        if (run == 2 && p + 1 < a.size() && q + 1 < b.size() && a[p + 1] != b[q + 1]) continue;
        i = p, j = q;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<Pair> align(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::vector<Pair> pairs;
  size_t i = 0, j = 0;
  while (i < first.size() && j < second.size()) {
    if (first[i] == second[j]) {
      pairs.push_back({static_cast<int64_t>(i++), static_cast<int64_t>(j++)});
      continue;
    }
    size_t to_i = i, to_j = j;
    if (!resume(first, second, to_i, to_j)) to_i = i + 1, to_j = j + 1;
    for (; i < to_i; ++i) pairs.push_back({static_cast<int64_t>(i), -1});
    for (; j < to_j; ++j) pairs.push_back({-1, static_cast<int64_t>(j)});
  }
  for (; i < first.size(); ++i) pairs.push_back({static_cast<int64_t>(i), -1});
  for (; j < second.size(); ++j) pairs.push_back({-1, static_cast<int64_t>(j)});
  return pairs;
}

CallDiff compare_calls(const Session& first, const Call& a, const Session& second, const Call& b,
                       const Tolerances& tolerances) {
  Tolerances t = tolerances;
  if (t.op == nullptr) t.op = op::find_op(a.function());
  return Comparer(first, a, second, b, t).run();
}

}  // namespace flashinfer::replay
