// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/variant/custom.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "flashinfer/core/fs.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/attention/variant/variant_call.h"

namespace flashinfer {
namespace attention {
namespace {

/// What a C name of `additional_*_dtypes` is in a tensor and in the generated source.
struct CType {
  const char* name;
  DType dtype;
  const char* source;
  bool integer;
};
constexpr CType kTypes[] = {
    {"float", DType::kF32, "float", false},
    {"double", DType::kF64, "double", false},
    {"half", DType::kF16, "flashinfer::f16_t", false},
    {"__half", DType::kF16, "flashinfer::f16_t", false},
    {"nv_half", DType::kF16, "flashinfer::f16_t", false},
    {"nv_bfloat16", DType::kBF16, "flashinfer::bf16_t", false},
    {"__nv_bfloat16", DType::kBF16, "flashinfer::bf16_t", false},
    {"bool", DType::kBool, "bool", true},
    {"uint8_t", DType::kU8, "uint8_t", true},
    {"uint16_t", DType::kU16, "uint16_t", true},
    {"uint32_t", DType::kU32, "uint32_t", true},
    {"int32_t", DType::kI32, "int32_t", true},
    {"int", DType::kI32, "int32_t", true},
    {"int64_t", DType::kI64, "int64_t", true},
};
const CType& type_of(const char* list, const std::string& name) {
  for (const CType& t : kTypes)
    if (name == t.name) return t;
  std::string known;
  for (const CType& t : kTypes) known += str(known.empty() ? "" : ", ", t.name);
  throw ValueError(str(list, " holds '", name, "', but must hold C types: ", known));
}

bool is_identifier(const std::string& s) {
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  return std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

/// Members of AttentionVariantParams that a scalar of the same name sets.
bool is_base_member(std::string_view name) { return name == "sm_scale" || name == "logits_soft_cap"; }
constexpr std::array kFilledTensors = {"maybe_custom_mask", "maybe_mask_indptr", "maybe_alibi_slopes",
                                       "maybe_prefix_len_ptr", "maybe_token_pos_in_items_ptr"};
constexpr std::array kFilledScalars = {"sm_scale", "logits_soft_cap", "token_pos_in_items_len"};
template <class List>
bool among(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

class Reader {
 public:
  explicit Reader(const std::vector<op::Value>& items) : items_(items) {}
  std::string text(const char* name) {
    const op::Value& v = next(name);
    const auto* s = v.as<std::string>();
    FI_CHECK(s, TypeError, "jit_args: ", name, " must be a string, but is ", op::type_name(v));
    return *s;
  }
  DType dtype(const char* name) {
    const op::Value& v = next(name);
    if (const auto* t = v.as<DType>()) return *t;
    const auto* s = v.as<std::string>();
    const auto t = s ? parse_dtype(*s) : std::nullopt;
    FI_CHECK(t.has_value(), TypeError, "jit_args: ", name, " must be a dtype, but is ", op::python_repr(v));
    return *t;
  }
  int64_t integer(const char* name) {
    const op::Value& v = next(name);
    const auto* i = v.as<int64_t>();
    FI_CHECK(i, TypeError, "jit_args: ", name, " must be an integer, but is ", op::type_name(v));
    return *i;
  }
  std::vector<std::string> texts(const char* name) {
    const op::Value& v = next(name);
    const auto* list = op::sequence_items(v);
    FI_CHECK(list, TypeError, "jit_args: ", name, " must be a list of strings, but is ", op::type_name(v));
    std::vector<std::string> out;
    for (const op::Value& x : *list) {
      const auto* s = x.as<std::string>();
      FI_CHECK(s, TypeError, "jit_args: ", name, " must be a list of strings, but holds ", op::type_name(x));
      out.push_back(*s);
    }
    return out;
  }

 private:
  const op::Value& next(const char* name) {
    FI_CHECK(at_ < items_.size(), TypeError, "jit_args has ", items_.size(), " elements, but ", name, " is missing");
    return items_[at_++];
  }
  const std::vector<op::Value>& items_;
  size_t at_ = 0;
};

void check_names(const char* list, const std::vector<std::string>& names, const std::vector<std::string>& types) {
  FI_CHECK(names.size() == types.size(), ValueError, "jit_args: ", list, " has ", names.size(), " names, but ",
           types.size(), " types");
  for (const std::string& n : names)
    FI_CHECK(is_identifier(n), ValueError, "jit_args: ", list, " holds '", n, "', which is no C++ name");
}

}  // namespace

AttentionVariant variant_from(const op::Value& value) {
  const auto* items = op::sequence_items(value);
  FI_CHECK(items, TypeError, "jit_args must be a list, but is ", op::type_name(value));
  Reader r(*items);
  AttentionVariant v;
  v.uri = r.text("uri");
  v.dtype_q = r.dtype("dtype_q"), v.dtype_kv = r.dtype("dtype_kv"), v.dtype_o = r.dtype("dtype_o"),
  v.idtype = r.dtype("idtype");
  v.head_dim_qk = r.integer("head_dim_qk"), v.head_dim_vo = r.integer("head_dim_vo");
  v.additional_tensor_names = r.texts("additional_tensor_names"),
  v.additional_tensor_dtypes = r.texts("additional_tensor_dtypes");
  v.additional_scalar_names = r.texts("additional_scalar_names"),
  v.additional_scalar_dtypes = r.texts("additional_scalar_dtypes");
  v.variant_name = r.text("variant_name"), v.variant_decl = r.text("variant_decl");
  check_names("additional_tensor_names", v.additional_tensor_names, v.additional_tensor_dtypes);
  check_names("additional_scalar_names", v.additional_scalar_names, v.additional_scalar_dtypes);
  FI_CHECK(is_identifier(v.variant_name), ValueError, "jit_args: variant_name is '", v.variant_name,
           "', which is no C++ name");
  for (const std::string& t : v.additional_tensor_dtypes) type_of("additional_tensor_dtypes", t);
  for (const std::string& t : v.additional_scalar_dtypes) type_of("additional_scalar_dtypes", t);
  return v;
}

void check_jit_kwargs(const op::Value& jit_args, const op::Value& kwargs) {
  if (kwargs.is_none()) return;
  const auto* dict = kwargs.as<op::DictValue>();
  FI_CHECK(dict, TypeError, "jit_kwargs must be a dict, but is ", op::type_name(kwargs));
  FI_CHECK(dict->items.empty() || !jit_args.is_none(), TypeError, "jit_kwargs needs jit_args");
  constexpr std::array kKnown = {"use_sliding_window", "use_logits_soft_cap", "use_fp16_qk_reduction",
                                 "pos_encoding_mode", "fp8_enabled"};
  for (const auto& [key, value] : dict->items) {
    const auto* name = key.as<std::string>();
    FI_CHECK(name && among(kKnown, *name), TypeError, "jit_kwargs got an unexpected keyword ", op::python_repr(key));
    const auto* mode = value.as<int64_t>();
    FI_CHECK(*name != "pos_encoding_mode" || (mode && *mode == 0), ValueError, "jit_kwargs: pos_encoding_mode is ",
             op::python_repr(value), ", but must be 0: a variant sees keys as they are");
  }
}

void check_variant(const Plan& p) {
  const AttentionVariant v = variant_from(p.jit_args);
  const auto same_type = [&](const char* what, DType declared, DType have) {
    FI_CHECK(declared == have, ValueError, what, " is ", flashinfer::name(have), ", but jit_args declares ",
             flashinfer::name(declared));
  };
  same_type("q's dtype", v.dtype_q, p.q_data_type);
  same_type("the dtype of K and V", v.dtype_kv, p.kv_data_type);
  same_type("the output's dtype", v.dtype_o, p.o_data_type);
  FI_CHECK(p.pos_encoding_mode == "NONE", ValueError, "pos_encoding_mode is '", p.pos_encoding_mode,
           "', but must be 'NONE' with jit_args: positions are the variant's business");
  FI_CHECK(v.head_dim_qk == p.head_dim_qk && v.head_dim_vo == p.head_dim_vo, ValueError, "the head dims are ",
           p.head_dim_qk, " and ", p.head_dim_vo, ", but jit_args declares ", v.head_dim_qk, " and ", v.head_dim_vo);
}

jit::Extension extension_of(const AttentionVariant& v) {
  std::string members, init, body;
  for (size_t i = 0; i < v.additional_tensor_names.size(); ++i) {
    // Not const: a variant may write to a tensor of the caller's, e.g. the logits.
    const std::string type = str(type_of("", v.additional_tensor_dtypes[i]).source, "*"),
                      &name = v.additional_tensor_names[i];
    members += str("  ", type, " ", name, ";\n");
    init += str(",\n        ", name, "(static_cast<", type, ">(const_cast<void*>(p.extra_tensors[", i, "])))");
  }
  for (size_t i = 0; i < v.additional_scalar_names.size(); ++i) {
    const CType& type = type_of("", v.additional_scalar_dtypes[i]);
    const std::string& name = v.additional_scalar_names[i];
    const std::string value =
        str("static_cast<", type.source, ">(p.extra_scalars[", i, "].", type.integer ? "integer" : "number", ")");
    if (is_base_member(name)) {
      body += str("    ", name, " = ", value, ";\n");
      continue;
    }
    members += str("  ", type.source, " ", name, ";\n");
    init += str(",\n        ", name, "(", value, ")");
  }
  jit::Extension e;
  e.label = v.variant_name;
  e.text =
      str("struct FlashinferVariantParams : flashinfer::AttentionVariantParams {\n", members,
          "  __device__ __host__ explicit FlashinferVariantParams(const flashinfer::AttentionParams& p)\n"
          "      : flashinfer::AttentionVariantParams(p)",
          init, " {\n", body, "  }\n};\nusing namespace flashinfer;\n#line 1 \"variant_decl\"\n", v.variant_decl, "\n");
  e.arguments = "FlashinferVariantParams, " + v.variant_name;
  return e;
}

namespace {
/// Byte offsets of masks as int32, as FlashInfer's own arrays are.
Tensor narrowed(const int64_t* offsets, int64_t n) {
  FI_CHECK(offsets[n - 1] <= std::numeric_limits<int32_t>::max(), ValueError, "the packed masks have ", offsets[n - 1],
           " bytes, but jit_args declares maybe_mask_indptr as int32_t: declare int64_t");
  Tensor made = Tensor::empty({n}, DType::kI32);
  std::transform(offsets, offsets + n, made.data_as<int32_t>(), [](int64_t x) { return static_cast<int32_t>(x); });
  return made;
}
/// The library's own value of this name; the declared type must be its type.
const void* filled_tensor(const std::string& name, const CType& type, const AttentionParams& p) {
  const auto of = [&](DType t, const void* data) {
    FI_CHECK(type.dtype == t, ValueError, "jit_args declares ", name, " as ", type.name,
             ", but the library's has elements of ", flashinfer::name(t));
    return data;
  };
  if (name == "maybe_custom_mask") return of(DType::kU8, p.mask);
  if (name == "maybe_mask_indptr") return of(DType::kI64, p.mask_indptr);
  if (name == "maybe_alibi_slopes") return of(DType::kF32, p.alibi_slopes);
  if (name == "maybe_prefix_len_ptr") return of(DType::kU32, p.prefix_len);
  return of(DType::kU16, p.token_pos);
}
AttentionScalar filled_scalar(const std::string& name, const AttentionParams& p) {
  if (name == "token_pos_in_items_len") return {static_cast<double>(p.token_pos_len), p.token_pos_len};
  const double x = name == "sm_scale" ? p.scale : p.soft_cap;
  return {x, static_cast<int64_t>(x)};
}

const void* given_tensor(const std::string& name, const CType& type, const op::Value& v, Device device) {
  if (v.is_none() && name.starts_with("maybe")) return nullptr;
  const TensorView* t = v.tensor();
  FI_CHECK(t, TypeError, name, " (of jit_args) must be a tensor, but is ", op::type_name(v));
  FI_CHECK(t->dtype() == type.dtype, ValueError, name, ".dtype is ", flashinfer::name(t->dtype()),
           ", but jit_args declares ", type.name);
  FI_CHECK(t->is_contiguous(), LayoutError, name, " must be contiguous, but is ", to_string(*t));
  FI_CHECK(t->device() == device, ValueError, name, " is on ", to_string(t->device()), ", but q is on ",
           to_string(device));
  return t->data();
}
AttentionScalar given_scalar(const std::string& name, const op::Value& v) {
  if (const auto* d = v.as<double>()) return {*d, static_cast<int64_t>(*d)};
  if (const auto* i = v.as<int64_t>()) return {static_cast<double>(*i), *i};
  if (const auto* b = v.as<bool>()) return {*b ? 1.0 : 0.0, *b};
  throw TypeError(str(name, " (of jit_args) must be a number, but is ", op::type_name(v)));
}
}  // namespace

Extras::Extras(const Plan& plan, const op::Value& args, const AttentionParams& p, Device device) {
  const AttentionVariant v = variant_from(plan.jit_args);
  static const std::vector<op::Value> none;
  const auto* given = args.is_none() ? &none : op::sequence_items(args);
  FI_CHECK(given, TypeError, "args must be a list, but is ", op::type_name(args));
  const size_t tensors = v.additional_tensor_names.size(), scalars = v.additional_scalar_names.size();
  const auto count = [](const auto& names, const auto& list) {
    return static_cast<size_t>(std::ranges::count_if(names, [&](const std::string& n) { return among(list, n); }));
  };
  const size_t filled_tensors = count(v.additional_tensor_names, kFilledTensors),
               filled_scalars = count(v.additional_scalar_names, kFilledScalars), n = given->size();
  const bool all = n == tensors + scalars, all_scalars = all || n == tensors + scalars - filled_tensors;
  FI_CHECK(all_scalars || n == tensors + scalars - filled_tensors - filled_scalars, TypeError, n,
           " additional arguments, but jit_args declares ", tensors, " tensors and ", scalars, " scalars",
           filled_tensors + filled_scalars
               ? str(", of which the library fills ", filled_tensors, " and ", filled_scalars)
               : "");
  size_t at = 0;
  for (size_t i = 0; i < tensors; ++i) {
    const std::string& name = v.additional_tensor_names[i];
    const CType& type = type_of("additional_tensor_dtypes", v.additional_tensor_dtypes[i]);
    if (all || !among(kFilledTensors, name)) {
      tensors_.push_back(given_tensor(name, type, (*given)[at++], device));
    } else if (name == "maybe_mask_indptr" && type.dtype == DType::kI32 && p.mask_indptr && device == kCpu) {
      mask_indptr_ = narrowed(p.mask_indptr, plan.batch_size + 1);
      tensors_.push_back(mask_indptr_.data());
    } else {
      tensors_.push_back(filled_tensor(name, type, p));
    }
  }
  for (const std::string& name : v.additional_scalar_names)
    scalars_.push_back(!all_scalars && among(kFilledScalars, name) ? filled_scalar(name, p)
                                                                   : given_scalar(name, (*given)[at++]));
}

std::optional<Extras> extras_of(const Plan& p, const op::Value& args, const AttentionParams& params, Device device) {
  const auto* given = op::sequence_items(args);
  FI_CHECK(!given || given->empty() || !p.jit_args.is_none(), TypeError, given->size(),
           " additional arguments were given, but there are no jit_args that declare any");
  if (p.jit_args.is_none()) return std::nullopt;
  FI_CHECK(!params.sinks, ValueError,
           "sinks cannot be combined with jit_args: a variant adds them itself (update_m_d)");
  return Extras(p, args, params, device);
}

}  // namespace attention

op::Value AttentionVariant::value() const {
  const auto list = [](const std::vector<std::string>& texts) {
    op::ListValue l;
    for (const std::string& t : texts) l.items.emplace_back(t);
    return op::Value(std::move(l));
  };
  op::ListValue l;
  l.items = {op::Value(uri),
             op::Value(dtype_q),
             op::Value(dtype_kv),
             op::Value(dtype_o),
             op::Value(idtype),
             op::Value(head_dim_qk),
             op::Value(head_dim_vo),
             list(additional_tensor_names),
             list(additional_tensor_dtypes),
             list(additional_scalar_names),
             list(additional_scalar_dtypes),
             op::Value(variant_name),
             op::Value(variant_decl)};
  return l;
}

std::string variant_decl_from_header(const std::string& path) {
  const auto text = fs::read_file(path);
  FI_CHECK(text.has_value(), RuntimeError, "variant_decl_from_header: cannot read ", path);
  return *text;
}

}  // namespace flashinfer
