// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/block/four_over_six.h"

#include <atomic>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/ops/quantization/block/launch.h"

namespace flashinfer::ops {
namespace {

bool squares(std::string_view mode) {
  FI_CHECK(mode == "MAE" || mode == "MSE", ValueError, "the error mode of NVFP4 4over6 is '", mode,
           "', but must be MAE or MSE");
  return mode == "MSE";
}

FourOverSix of_environment() {
  if (!env::flag("FLASHINFER_NVFP4_4OVER6")) return {};
  const FourOverSix r{true, env::flag("FLASHINFER_NVFP4_4OVER6_E4M3_USE_256"),
                      squares(env::text("FLASHINFER_NVFP4_4OVER6_ERR_MODE")),
                      env::flag("FLASHINFER_NVFP4_4OVER6_ERR_USE_FAST_MATH")};
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true))
    future(
        "The FLASHINFER_NVFP4_4OVER6* environment variables are deprecated; pass nvfp4_4over6=NVFP44Over6Config(...) "
        "explicitly instead.");
  return r;
}

FourOverSix of_code(int64_t code) {
  FI_CHECK(code >= 0 && code < 32, ValueError, "nvfp4_4over6 is ", code,
           ", but a recipe as a number is -1 (the environment's) or has bits 0 to 4 alone");
  FI_CHECK(!(code & 8) || !(code & 1), ValueError, "nvfp4_4over6 is ", code,
           ", but its error mode (bits 2 and 3) must be 0 (MAE) or 1 (MSE)");
  if (!(code & 1)) return {};
  return {true, (code & 2) != 0, (code & 4) != 0, (code & 16) != 0};
}

FourOverSix of_members(const op::DictValue& members) {
  FourOverSix r{true};
  for (const auto& [key, value] : members.items) {
    const auto* name = key.as<std::string>();
    const auto* number = value.as<int64_t>();
    const auto* flag = value.as<bool>();
    if (name && *name == "e4m3_max" && number && (*number == 448 || *number == 256)) {
      r.max_is_256 = *number == 256;
    } else if (name && *name == "err_mode" && number && (*number == 0 || *number == 1)) {
      r.squares = *number == 1;
    } else if (const auto* e = value.as<op::EnumValue>(); name && *name == "err_mode" && e) {
      r.squares = squares(std::string_view(e->name).substr(e->name.find('.') + 1));
    } else if (name && *name == "err_use_fast_math" && flag) {
      r.fast = *flag;
    } else {
      throw ValueError(str("nvfp4_4over6 has ", op::python_repr(key), ": ", op::python_repr(value),
                           ", but a recipe has e4m3_max (448 or 256), err_mode (MAE or MSE) and err_use_fast_math"));
    }
  }
  return r;
}
}  // namespace

FourOverSix four_over_six(const op::Value& setting) {
  if (setting.is_none()) return {};
  if (const auto* opaque = setting.as<op::OpaqueValue>(); opaque && opaque->repr == kUnset4Over6)
    return of_environment();
  if (const auto* code = setting.as<int64_t>()) return *code == -1 ? of_environment() : of_code(*code);
  if (const auto* members = setting.as<op::DictValue>()) return of_members(*members);
  throw TypeError(str("nvfp4_4over6 must be an NVFP44Over6Config or None (or omitted); got ", op::type_name(setting)));
}

void check_no_4over6(const op::Value& setting, const char* what) {
  FI_CHECK(!four_over_six(setting).on, ValueError, "nvfp4_4over6 is on, but ", what, " has no recipe 4 over 6");
}

}  // namespace flashinfer::ops
