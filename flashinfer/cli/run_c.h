/* SPDX-License-Identifier: Apache-2.0 */
/* The command line for programs in other languages: libflashinfer_commands.so. Plain C. */
#ifndef FLASHINFER_CLI_RUN_C_H_
#define FLASHINFER_CLI_RUN_C_H_
#include <stddef.h>

#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

/* The program that runs a command and receives its output. No function may throw. */
typedef struct FlashinferHost {
  void* self;                                                          /* passed to the functions */
  void (*write)(void* self, int error, const char* text, size_t size); /* null: the program's stdout and stderr */
  int terminal;                                                        /* with write: whether it ends on a terminal */
  /* For reports about the environment: passes JSON {title: {key: value}} to `take` with `to`. May be null. */
  void (*sections)(void* self, void (*take)(void* to, const char* json, size_t size), void* to);
} FlashinferHost;

/* Runs `flashinfer <args>` and returns its exit code: 0 success, 1 a failure the command looks for, 2 wrong usage or
 * unreadable input. One at a time in a process: a second call waits. */
int flashinfer_run_command(int count, const char* const* args, const FlashinferHost* host);

/* The subcommands as JSON, for generating them in another language; lives as long as the program. [{"name", "help",
 * "parameters": [{"names": ["-o", "--output"], "positional": "path" or "", "help", "type": "TEXT", "INT...",
 * "FLOAT..." or "TEXT:{a,b}", "flag", "required", "multiple", "default"}]}] */
const char* flashinfer_commands(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
