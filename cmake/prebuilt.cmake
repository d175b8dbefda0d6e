# SPDX-License-Identifier: Apache-2.0
# -DFLASHINFER_PREBUILT=<build folder>: nothing is compiled; the package is what that folder has built (`make wheel`, the tests).
install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} --install ${FLASHINFER_PREBUILT} --component python
                                      --prefix \${CMAKE_INSTALL_PREFIX} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)" COMPONENT python)
add_custom_target(python_package)
