# SPDX-License-Identifier: Apache-2.0
# Packages of the components that install.cmake names: `cpack -G DEB` in the build folder makes libflashinfer and libflashinfer-dev,
# `cpack -G TGZ` archives. `cmake --build ... --target aot` before puts precompiled kernels in.
set(CPACK_PACKAGE_NAME flashinfer)
set(CPACK_PACKAGE_VENDOR "the flashinfer-cpp authors")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Kernels for serving language models, on GPU and CPU, with a log, a recorder and a replayer")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libflashinfer)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS g++)  # kernels that are not precompiled are compiled at their first call
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libflashinfer-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libflashinfer (= ${PROJECT_VERSION})")
include(CPack)
