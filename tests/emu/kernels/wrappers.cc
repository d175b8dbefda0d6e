// SPDX-License-Identifier: Apache-2.0
#include "wrappers.cuh"

using namespace flashinfer;
FI_CUDA_ENTRY_NAMED(product_e4m3, PlantedParams, cu::product_e4m3)
FI_CUDA_ENTRY_NAMED(eight_bits, PlantedParams, cu::eight_bits)
FI_CUDA_ENTRY_NAMED(store_plain, PlantedParams, cu::store_tile<true, false>)
FI_CUDA_ENTRY_NAMED(store_swizzled, PlantedParams, cu::store_tile<true, true>)
FI_CUDA_ENTRY_NAMED(store_without_sync, PlantedParams, cu::store_tile<false, true>)
FI_CUDA_ENTRY_NAMED(copies, PlantedParams, cu::copies)
FI_CUDA_ENTRY_NAMED(hand_over, PlantedParams, cu::hand_over<true>)
FI_CUDA_ENTRY_NAMED(hand_over_once, PlantedParams, cu::hand_over<false>)
FI_CUDA_ENTRY_NAMED(cluster_sum, PlantedParams, cu::cluster_sum)
FI_CUDA_ENTRY_NAMED(special, PlantedParams, cu::special)
