# SPDX-License-Identifier: Apache-2.0
# The op that new ones are copied from is no part of the library.
file(GLOB skeleton_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/flashinfer/ops/skeleton/*.cc)
target_sources(skeleton_tests PRIVATE ${skeleton_sources})
