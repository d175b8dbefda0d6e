# SPDX-License-Identifier: Apache-2.0
"""A program that answers lines with numbers: what is compared takes turns, each in a process of its own."""
import os
import statistics
import subprocess
import sys
import time


class Side:
    def __init__(self, command, **env):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **env))

    def numbers(self, line, times=1):
        """The numbers of an answer, each the median of `times`: the first wakes threads, which a model's stream of calls does not."""
        answers = []
        for _ in range(times):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            if not answer:
                sys.exit(f"{' '.join(self.command)}: ended at '{line}'")
            answers.append([float(x) for x in answer.split()])
        time.sleep(0.01)  # its spinning threads go to sleep before the other side starts
        return [statistics.median(column) for column in zip(*answers)]

    def ask(self, line, times=1):
        """The first of them."""
        return self.numbers(line, times)[0]
