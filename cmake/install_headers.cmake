# SPDX-License-Identifier: Apache-2.0
# Installs headers; all others in the source tree are private. Runs at install time, and alone:
#   cmake -DSOURCE=<source root> [-DGENERATED=<folder of flashinfer/ops.h> -DPUBLIC=<folder>] [-DKERNELS=<folder>] -P install_headers.cmake
# PUBLIC gets what programs include: the headers named here and all that these include, directly or not.
# KERNELS gets what is compiled just in time: everything below folders named `kernels`, and what that includes.
cmake_minimum_required(VERSION 3.22)

set(public_headers
    flashinfer/flashinfer.h        # the ops, tensors, errors, contexts, warm-up, recorder
    flashinfer/core/int_math.h     # ceil_div, round_up
    flashinfer/core/thread_pool.h  # the default executor, the number of usable CPUs
    flashinfer/core/cuda/memory.h  # streams, graphs and pinned memory of GPUs
    flashinfer/op/registry.h       # ops of a program's own
    flashinfer/jit/cuda.h          # kernels of a program's own; includes jit/jit.h
    flashinfer/comm/launch.h       # what mpirun, srun and torchrun say of the ranks that they started
    flashinfer/replay/replay.h     # replaying recordings
    flashinfer/formats/pt.h        # .pt and .safetensors files
    flashinfer/ffi/flashinfer_c.h) # C

# out: `headers` and all that they include from `roots` (the first that holds a file), as "root|header".
function(headers_closure out roots headers)
  set(found "")
  set(seen ${headers})
  while(headers)
    list(POP_FRONT headers header)
    foreach(root IN LISTS roots)
      if(EXISTS ${root}/${header})
        list(APPEND found "${root}|${header}")
        file(STRINGS ${root}/${header} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<]flashinfer/")
        foreach(line IN LISTS lines)
          string(REGEX REPLACE "^[^\"<]*[\"<]([^\">]*)[\">].*" "\\1" name "${line}")
          if(NOT name IN_LIST seen)
            list(APPEND seen ${name})
            list(APPEND headers ${name})
          endif()
        endforeach()
        break()
      endif()
    endforeach()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(install_headers destination roots headers)
  headers_closure(found "${roots}" "${headers}")
  foreach(entry IN LISTS found)
    string(REGEX REPLACE "\\|.*" "" root "${entry}")
    string(REGEX REPLACE ".*\\|" "" header "${entry}")
    get_filename_component(folder ${destination}/${header} DIRECTORY)
    file(INSTALL ${root}/${header} DESTINATION ${folder})
  endforeach()
endfunction()

if(PUBLIC)
  install_headers(${PUBLIC} "${SOURCE};${GENERATED}" "${public_headers}")
endif()
if(KERNELS)
  file(GLOB_RECURSE kernels RELATIVE ${SOURCE} ${SOURCE}/flashinfer/*.h ${SOURCE}/flashinfer/*.cuh)
  list(FILTER kernels INCLUDE REGEX "/kernels/")
  list(FILTER kernels EXCLUDE REGEX "^flashinfer/kernels/emu/")  # the emulator itself; what kernels include of it follows
  list(FILTER kernels EXCLUDE REGEX "^flashinfer/ops/skeleton/")  # what new ops are copied from
  install_headers(${KERNELS} "${SOURCE}" "${kernels}")
endif()
