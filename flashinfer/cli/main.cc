// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/run.h"

int main(int argc, char** argv) { return flashinfer::cli::run({argv + 1, argv + argc}); }
