// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/run_c.h"

int main(int argc, char** argv) { return flashinfer_run_command(argc - 1, argv + 1, nullptr); }
