# SPDX-License-Identifier: Apache-2.0
"""Additional parameters of an attention variant as C++ text."""
from typing import List


def generate_additional_params(additional_tensor_names: List[str], additional_tensor_dtypes: List[str], additional_scalar_names: List[str],
                               additional_scalar_dtypes: List[str], is_sm90_template: bool = False):
    """(members of a struct, parameters of a TVM-FFI function, statements that set the members from them). A tensor whose name begins
    with `maybe` may be None. `is_sm90_template`: members lie in `params.additional_params`."""
    struct = "params.additional_params" if is_sm90_template else "params"
    members, parameters, setters = [], [], []
    for name, dtype in zip(additional_tensor_names, additional_tensor_dtypes):
        members.append(f"{dtype}* {name};\n")
        if name.startswith("maybe"):
            parameters.append(f", Optional<ffi::Tensor> {name}")
            setters.append(f"{struct}.{name} = {name} ? static_cast<{dtype}*>({name}.value().data_ptr()): nullptr;")
        else:
            parameters.append(f", ffi::Tensor {name}")
            setters.append(f"{struct}.{name} = static_cast<{dtype}*>({name}.data_ptr());")
    for name, dtype in zip(additional_scalar_names, additional_scalar_dtypes):
        members.append(f"{dtype} {name};\n")
        parameters.append(f", {dtype} {name}")
        setters.append(f"{struct}.{name} = {name};")
    return "".join(members), "".join(parameters), " \\\n".join(setters)
