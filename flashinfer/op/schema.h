// SPDX-License-Identifier: Apache-2.0
// The table of an argument block's members. It is the only description of a signature: checks and their messages, log,
// dump, replay, other languages, cases and docs are derived from it.
//
//   constexpr op::Field fields[] = {
//       op::in<&RmsNorm::input>("input", "... d", op::floats),
//       op::in<&RmsNorm::weight>("weight", "d", op::same_as("input")),
//       op::attr<&RmsNorm::eps>("eps"),
//       op::out<&RmsNorm::out>("out", "... d", op::same_as("input"), op::may_alias("input")),
//   };
// Order and names are those of the public signature. A member's default is the block's default member value.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "flashinfer/op/dims.h"
#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

enum class Role : uint8_t {
  kIn,          // read
  kInOut,       // read and written
  kOut,         // written; a parameter of the public signature; allocated when absent; returned unless not_returned
  kResult,      // returned, not in the public signature; a C++ caller may still supply the memory
  kAttr,        // a plain value
  kScratch,     // workspace: arbitrary content, the recorder stores only its description
  kPaged,       // a paged pool, read: the recorder may store only pages named by arrays with page_ids
  kPagedInOut,  // a paged pool, written
  kSelf,        // Object*: the receiver of a method
};

struct Shape {
  int rank = 0;
  int64_t size[TensorView::kMaxRank] = {};
  std::span<const int64_t> span() const { return {size, static_cast<size_t>(rank)}; }
};

/// The tensors of a member: none (an optional one that is absent), one, both of a paged cache, or those of a list.
class Views {
 public:
  constexpr Views() = default;
  explicit Views(const TensorView& v) : first_(&v), count_(v.defined() ? 1 : 0) {}
  Views(const TensorView& first, const TensorView& second) : first_(&first), second_(&second), count_(2) {}
  explicit Views(const std::vector<TensorView>& list) : first_(list.data()), count_(static_cast<int>(list.size())) {}
  int size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const TensorView& operator[](int i) const { return i == 1 && second_ ? *second_ : first_[i]; }

 private:
  const TensorView *first_ = nullptr, *second_ = nullptr;
  int count_ = 0;
};

struct Field {
  const char* name = nullptr;
  Role role = Role::kAttr;
  const char* type = "object";  // of the member, for other languages: "Tensor", "float", ... (detail::type_text)
  bool optional = false;        // None is a distinct value
  const char* doc = nullptr;    // its meaning, when name, shape and type do not tell
  Dims dims;
  DTypeSet dtypes;                   // empty: any
  const char* same_as = nullptr;     // dtype equal to that of this argument
  const char* dtype_from = nullptr;  // dtype named by this attribute (when it is given; else same_as)
  const char* may_alias = nullptr;   // outputs may share memory with this input (exactly the same view)
  const char* literal = nullptr;     // the default as Python shows it, when it differs from ours (`8` for 8.0)
  const char* choices = nullptr;     // legal strings, "NHD|HND"; another one is a KeyError or ValueError (choice_error)
  ErrorKind choice_error = ErrorKind::kValueError;
  const char* backends =
      nullptr;  // "cudnn:cuda|auto": legal back ends and the kind of device each exists for (none: all)
  const char* structure = nullptr;  // a dict's members as a class in other languages, by its makers (op::structure)
  const char* enumeration =
      nullptr;                // "TopKTieBreak: NONE=0|SMALL=1|LARGE=2": the numbers' names in languages that have enums
  bool required = false;      // no default
  bool keyword_only = false;  // this one and all after it
  bool was_positional =
      false;             // keyword-only now; taken by position behind the others, in the table's order, with a warning
  bool varargs = false;  // a Value that takes all further positional arguments (`*args`); only required ones before it
  bool not_returned = false;  // an output the public function does not return
  // The form in which a result is returned by name (other languages, log, recorder); C++ returns the tensor.
  bool as_numbers = false;                      // its elements, each a number of its own
  bool unstacked = false;                       // a tuple of its slices along the first dimension
  bool tuple_with_previous = false;             // in one tuple with the output before it
  bool any_layout = false;                      // the last dimension may be strided (the op says what it takes)
  bool contiguous = false;                      // must be contiguous as a whole
  bool page_ids = false;                        // index array: its elements are pages of the call's pools
  bool host_memory = false;                     // may be in host memory beside tensors on a GPU
  bool internal = false;                        // ours, not in the public signature; shown only when given
  bool (*when)(const void* block) = nullptr;    // results: produced, and inout: returned too, only if true
  Shape (*shape)(const void* block) = nullptr;  // outputs: the shape, when dims cannot say it
  DType (*dtype)(const void* block) = nullptr;  // outputs: the element type, when no argument says it (a plan does)
  Shape (*strides)(const void* block) =
      nullptr;  // outputs that are made: their strides in elements, when not row-major
  // Access to the member, by its type.
  Value (*get)(const void* block) = nullptr;
  void (*set)(void* block, const Value& v, const Field& f) = nullptr;  // TypeError naming the field
  Views (*tensors)(const void* block) = nullptr;                       // null for kinds that are no tensors
  void (*assign)(void* block, const TensorView& v) = nullptr;          // outputs: sets the view
};

// ---- options of a field ----
struct SameAs {
  const char* name;
};
struct DTypeFrom {
  const char* name;
};
struct MayAlias {
  const char* name;
};
struct Literal {
  const char* text;
};
struct Choices {
  const char* names;
  ErrorKind error = ErrorKind::kValueError;
};
struct Doc {
  const char* text;
};
struct Backends {
  const char* names;
};
struct Enumeration {
  const char* text;
};
struct Structure {
  const char* makers;
};
struct RequiredOption {};
struct KeywordOnly {};
struct WasPositional {};
struct Varargs {};
struct NotReturned {};
struct AsNumbers {};
struct Unstacked {};
struct TupleWithPrevious {};
struct AnyLayout {};
struct Contiguous {};
struct PageIds {};
struct HostMemory {};
struct InternalOption {};
template <auto Member>
struct When {};
template <auto Function>
struct ShapeBy {};
template <auto Function>
struct DTypeBy {};
template <auto Function>
struct StridesBy {};

constexpr SameAs same_as(const char* n) { return {n}; }
constexpr DTypeFrom dtype_from(const char* n) { return {n}; }
constexpr MayAlias may_alias(const char* n) { return {n}; }
constexpr Literal literal(const char* t) { return {t}; }
constexpr Choices choices(const char* names, ErrorKind e = ErrorKind::kValueError) { return {names, e}; }
constexpr Doc doc(const char* t) { return {t}; }
/// A member that chooses among implementations by name. The names of the op's candidates are legal too. A name for
/// another kind of device than the tensors' gives a warning, once, and the default is used; a name of this kind must be
/// supported.
constexpr Backends backends(const char* names) { return {names}; }
constexpr Enumeration enumeration(const char* text) { return {text}; }
/// "MLAPlanMetadata: csr(qo_indptr, kv_indptr); dense(block_tables, max_q_len=None)": the class and the ways to make
/// one. Its members, in the order in which the makers name them, are None unless given; the op sees a dict of them.
constexpr Structure structure(const char* makers) { return {makers}; }
inline constexpr RequiredOption required{};
inline constexpr KeywordOnly keyword_only{};
inline constexpr WasPositional was_positional{};
inline constexpr Varargs varargs{};
inline constexpr NotReturned not_returned{};
inline constexpr AsNumbers as_numbers{};
inline constexpr Unstacked unstacked{};
inline constexpr TupleWithPrevious tuple_with_previous{};
inline constexpr AnyLayout any_layout{};
inline constexpr Contiguous contiguous{};
inline constexpr PageIds page_ids{};
inline constexpr HostMemory host_memory{};
inline constexpr InternalOption internal{};
template <auto Member>
inline constexpr When<Member> when{};  // a bool member of the block, or bool(const Block&)
template <auto Function>
inline constexpr ShapeBy<Function> shape{};  // Shape f(const Block&)
template <auto Function>
inline constexpr DTypeBy<Function> dtype{};  // DType f(const Block&)
template <auto Function>
inline constexpr StridesBy<Function>
    strides{};  // Shape f(const Block&): a stride an axis, no two elements at one place

inline constexpr DTypeSet any_dtype{};
inline constexpr DTypeSet floats = DTypeSet(DType::kF32) | DType::kF16 | DType::kBF16;
inline constexpr DTypeSet fp8 = DTypeSet(DType::kF8E4M3) | DType::kF8E5M2;
inline constexpr DTypeSet indices = DTypeSet(DType::kI32) | DType::kI64;

// ---- member access by type: the kinds a schema knows, and nothing else ----
Value to_value(const TensorView& v);
Value to_value(const Tensor& v);
Value to_value(const PagedKv& v);
Value to_value(const ScalarOrTensor& v);
Value to_value(const std::vector<TensorView>& v);
Value to_value(Object* v);
inline Value to_value(const Value& v) { return v; }  // arguments of any type
inline Value to_value(bool v) { return v; }
inline Value to_value(int64_t v) { return v; }
inline Value to_value(double v) { return v; }
inline Value to_value(const std::string& v) { return v; }
inline Value to_value(DType v) { return v; }
inline Value to_value(Device v) { return v; }
inline Value to_value(const Generator& v) { return v; }
inline Value to_value(const std::vector<int64_t>& v) {
  ListValue l;
  for (int64_t x : v) l.items.emplace_back(x);
  return l;
}
template <class T>
Value to_value(const std::optional<T>& v) {
  return v ? to_value(*v) : Value();
}

inline void from_value(Value& out, const Value& v, const Field&) { out = v; }
void from_value(TensorView& out, const Value& v, const Field& f);
void from_value(Tensor& out, const Value& v, const Field& f);
void from_value(PagedKv& out, const Value& v, const Field& f);
void from_value(ScalarOrTensor& out, const Value& v, const Field& f);
void from_value(std::vector<TensorView>& out, const Value& v, const Field& f);
void from_value(std::vector<int64_t>& out, const Value& v, const Field& f);
void from_value(Object*& out, const Value& v, const Field& f);
void from_value(bool& out, const Value& v, const Field& f);
void from_value(int64_t& out, const Value& v, const Field& f);
void from_value(double& out, const Value& v, const Field& f);
void from_value(std::string& out, const Value& v, const Field& f);
void from_value(DType& out, const Value& v, const Field& f);
void from_value(Device& out, const Value& v, const Field& f);
void from_value(Generator& out, const Value& v, const Field& f);
template <class T>
void from_value(std::optional<T>& out, const Value& v, const Field& f) {
  if (v.is_none()) {
    out.reset();
    return;
  }
  T x{};
  from_value(x, v, f);
  out = std::move(x);
}

namespace detail {
template <class M>
struct MemberOf;
template <class B, class T>
struct MemberOf<T B::*> {
  using Block = B;
  using Type = T;
};

inline Views views(const TensorView& v) { return Views(v); }
inline Views views(const Tensor& v) { return Views(v.view()); }
inline Views views(const PagedKv& v) {
  if (!v.first.defined()) return {};
  return v.stacked ? Views(v.first) : Views(v.first, v.second);
}
inline Views views(const ScalarOrTensor& v) { return v.tensor() ? Views(*v.tensor()) : Views(); }
inline Views views(const std::vector<TensorView>& v) { return Views(v); }
template <class T>  // not what merely converts to one of them, as a number does to ScalarOrTensor
concept HoldsViews = std::is_same_v<T, TensorView> || std::is_same_v<T, Tensor> || std::is_same_v<T, PagedKv> ||
                     std::is_same_v<T, ScalarOrTensor> || std::is_same_v<T, std::vector<TensorView>>;
template <HoldsViews T>
Views views(const std::optional<T>& v) {
  return v ? views(*v) : Views();
}
template <class T>
inline constexpr bool kHasViews = HoldsViews<T>;
template <HoldsViews T>
inline constexpr bool kHasViews<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsView = std::is_same_v<T, TensorView> || std::is_same_v<T, std::optional<TensorView>>;

template <class T>
inline constexpr const char* type_text = "object";
template <>
inline constexpr const char* type_text<TensorView> = "Tensor";
template <>
inline constexpr const char* type_text<Tensor> = "Tensor";
template <>
inline constexpr const char* type_text<PagedKv> = "PagedKv";
template <>
inline constexpr const char* type_text<ScalarOrTensor> = "ScalarOrTensor";
template <>
inline constexpr const char* type_text<std::vector<TensorView>> = "Tensors";
template <>
inline constexpr const char* type_text<std::vector<int64_t>> = "ints";
template <>
inline constexpr const char* type_text<Object*> = "self";
template <>
inline constexpr const char* type_text<bool> = "bool";
template <>
inline constexpr const char* type_text<int64_t> = "int";
template <>
inline constexpr const char* type_text<double> = "float";
template <>
inline constexpr const char* type_text<std::string> = "str";
template <>
inline constexpr const char* type_text<DType> = "dtype";
template <>
inline constexpr const char* type_text<Device> = "device";
template <>
inline constexpr const char* type_text<Generator> = "Generator";
template <class T>
inline constexpr const char* type_text<std::optional<T>> = type_text<T>;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <auto M>
constexpr Field member(const char* name, Role role) {
  using Block = typename MemberOf<decltype(M)>::Block;
  using Type = typename MemberOf<decltype(M)>::Type;
  Field f;
  f.name = name;
  f.role = role;
  f.type = type_text<Type>;
  f.optional = kIsOptional<Type>;
  f.required = std::is_same_v<Type, TensorView> || std::is_same_v<Type, PagedKv> || std::is_same_v<Type, Object*> ||
               std::is_same_v<Type, std::vector<TensorView>>;
  f.get = [](const void* b) -> Value { return to_value(static_cast<const Block*>(b)->*M); };
  f.set = [](void* b, const Value& v, const Field& fd) { from_value(static_cast<Block*>(b)->*M, v, fd); };
  if constexpr (kHasViews<Type>) f.tensors = [](const void* b) { return views(static_cast<const Block*>(b)->*M); };
  if constexpr (kIsView<Type>) f.assign = [](void* b, const TensorView& v) { static_cast<Block*>(b)->*M = v; };
  return f;
}
constexpr void apply(Field& f, DTypeSet s) { f.dtypes = s; }
constexpr void apply(Field& f, DType s) { f.dtypes = s; }
constexpr void apply(Field& f, SameAs s) { f.same_as = s.name; }
constexpr void apply(Field& f, DTypeFrom s) { f.dtype_from = s.name; }
constexpr void apply(Field& f, MayAlias s) { f.may_alias = s.name; }
constexpr void apply(Field& f, Literal s) { f.literal = s.text; }
constexpr void apply(Field& f, Choices s) {
  f.choices = s.names;
  f.choice_error = s.error;
}
constexpr void apply(Field& f, Doc s) { f.doc = s.text; }
constexpr void apply(Field& f, Backends s) { f.backends = s.names; }
constexpr void apply(Field& f, Enumeration s) { f.enumeration = s.text; }
constexpr void apply(Field& f, Structure s) { f.structure = s.makers; }
constexpr void apply(Field& f, RequiredOption) { f.required = true; }
constexpr void apply(Field& f, KeywordOnly) { f.keyword_only = true; }
constexpr void apply(Field& f, WasPositional) { f.keyword_only = f.was_positional = true; }
constexpr void apply(Field& f, Varargs) { f.varargs = true; }
constexpr void apply(Field& f, NotReturned) { f.not_returned = true; }
constexpr void apply(Field& f, AsNumbers) { f.as_numbers = true; }
constexpr void apply(Field& f, Unstacked) { f.unstacked = true; }
constexpr void apply(Field& f, TupleWithPrevious) { f.tuple_with_previous = true; }
constexpr void apply(Field& f, AnyLayout) { f.any_layout = true; }
constexpr void apply(Field& f, Contiguous) { f.contiguous = true; }
constexpr void apply(Field& f, PageIds) { f.page_ids = true; }
constexpr void apply(Field& f, HostMemory) { f.host_memory = true; }
constexpr void apply(Field& f, InternalOption) { f.internal = true; }
template <auto M>
struct Predicate;
template <class B, bool B::* M>
struct Predicate<M> {
  static bool eval(const void* b) { return static_cast<const B*>(b)->*M; }
};
template <class B, bool (*F)(const B&)>
struct Predicate<F> {
  static bool eval(const void* b) { return F(*static_cast<const B*>(b)); }
};
template <auto M>
constexpr void apply(Field& f, When<M>) {
  f.when = &Predicate<M>::eval;
}
template <auto F>
struct ShapeOf;
template <class B, Shape (*F)(const B&)>
struct ShapeOf<F> {
  static Shape eval(const void* b) { return F(*static_cast<const B*>(b)); }
};
template <auto F>
constexpr void apply(Field& f, ShapeBy<F>) {
  f.shape = &ShapeOf<F>::eval;
}
template <auto F>
constexpr void apply(Field& f, StridesBy<F>) {
  f.strides = &ShapeOf<F>::eval;
}
template <auto F>
struct DTypeOf;
template <class B, DType (*F)(const B&)>
struct DTypeOf<F> {
  static DType eval(const void* b) { return F(*static_cast<const B*>(b)); }
};
template <auto F>
constexpr void apply(Field& f, DTypeBy<F>) {
  f.dtype = &DTypeOf<F>::eval;
}
}  // namespace detail

/// `dims` may be null: the op checks the shape itself.
struct DimsText {
  Dims dims;
  consteval DimsText(const char* s) : dims(parse_dims(s)) {}
};
#define FI_OP_TENSOR_FIELD(function, role_value)                                  \
  template <auto M, class... Options>                                             \
  constexpr Field function(const char* name, DimsText dims, Options... options) { \
    Field f = detail::member<M>(name, role_value);                                \
    f.dims = dims.dims;                                                           \
    (detail::apply(f, options), ...);                                             \
    return f;                                                                     \
  }
FI_OP_TENSOR_FIELD(in, Role::kIn)
FI_OP_TENSOR_FIELD(inout, Role::kInOut)
FI_OP_TENSOR_FIELD(out, Role::kOut)
FI_OP_TENSOR_FIELD(result, Role::kResult)
FI_OP_TENSOR_FIELD(scratch, Role::kScratch)
FI_OP_TENSOR_FIELD(paged, Role::kPaged)
FI_OP_TENSOR_FIELD(paged_inout, Role::kPagedInOut)
#undef FI_OP_TENSOR_FIELD

template <auto M, class... Options>
constexpr Field attr(const char* name, Options... options) {
  Field f = detail::member<M>(name, Role::kAttr);
  (detail::apply(f, options), ...);
  return f;
}
/// The receiver: `Object* self` of the block, first in the table.
template <auto M>
constexpr Field self() {
  Field f = detail::member<M>("self", Role::kSelf);
  return f;
}

}  // namespace flashinfer::op

#pragma GCC visibility pop
