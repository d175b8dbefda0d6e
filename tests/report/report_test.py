# SPDX-License-Identifier: Apache-2.0
"""flashinfer report and bench --html: what they say of recordings made here by hand and by the command, and that a browser shows the pages."""
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FLASHINFER_BUILD_DIR", ROOT / "build/release"))
COMMAND = BUILD / "bin/flashinfer"
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J\u202e<!--"
NAN, INF = math.nan, math.inf


def flashinfer(*args, **env):
    return subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, env={**os.environ, **env}, timeout=300)


def safetensors(path, tensors):
    """{key: (shape, values)} as f32."""
    head, data = {}, b""
    for key, (shape, values) in tensors.items():
        bytes_ = struct.pack(f"<{len(values)}f", *values)
        head[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Recording:
    """A session in the recorder's format, one call at a time."""

    def __init__(self, folder):
        self.folder, self.calls = pathlib.Path(folder), 0
        self.folder.mkdir()

    def call(self, name="op_a", x=(1, 2, 3, 4), y=(2, 4, 6, 8), status="completed", thread=7, **more):
        self.calls += 1
        n = self.calls
        call = self.folder / f"20261122_1000{n // 1000:02d}_{n % 1000:03d}_pid5_c_call{n:04d}"
        call.mkdir()
        details = {"arg_0": {"shape": [len(x)], "dtype": "torch.float32", "stride": [1], "device": "cpu", "role": "in"}}
        safetensors(call / "inputs.safetensors", {"arg_0": ([len(x)], x)})
        if status == "completed":
            details["result"] = {"shape": [2, 2], "dtype": "torch.float32", "stride": [2, 1], "device": "cpu", "role": "result"}
            safetensors(call / "outputs.safetensors", {"result": ([2, 2], y)})
        record = {"function_name": name, "module": "m", "call_sequence": n, "timestamp": f"20261122_1000{n // 1000:02d}_{n % 1000:03d}",
                  "process_id": 5, "input_metadata": {"kwarg_eps": 0.5}, "output_metadata": {}, "tensor_details": details,
                  "tensor_format": "safetensors", "execution_status": status, "sequence": n, "arg_names": ["x"], "host": "h", "thread_id": thread,
                  "start_ns": 1000 * n, "duration_us": 0.25, "wall_time_ns": 10**18 + 1000 * n, "backend": "cpu", **more}
        if status != "completed":
            record.pop("duration_us")
        (call / "metadata.jsonl").write_text(json.dumps(record) + "\n")
        return self


class Pages(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.dir = pathlib.Path(self.scratch.name)

    def report(self, *args):
        done = flashinfer("report", *args, "-o", self.dir / "page.html")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.out, self.page = done.stdout, (self.dir / "page.html").read_text()
        return json.loads(re.search(r'id="data">(.*?)</script>', self.page, re.S)[1])

    def browse(self, fragment="", page="page.html"):
        """The document before its data, after its scripts ran; fails on anything they write to the console."""
        if not BROWSER:
            self.skipTest("no chromium-headless-shell (tools/setup.sh test installs it on Debian)")
        done = subprocess.run([BROWSER, "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom",
                               "--window-size=1400,1200", f"--user-data-dir={self.dir}/profile", f"file://{self.dir}/{page}{fragment}"],
                              capture_output=True, text=True, timeout=120)
        self.assertNotIn("CONSOLE", done.stderr)
        self.assertIn('data-ready="1"', done.stdout[:200] or done.stderr[-2000:])
        self.assertNotIn("data-error", done.stdout[:200])
        return done.stdout[:done.stdout.index('<script type="application/json"')]

    @staticmethod
    def ops_shown(dom):
        """The text of the second column of the rows in view."""
        return [re.findall(r'<div class="cell[^>]*>(.*?)</div>', row)[1] for row in dom.split('<div class="vrow')[1:]]

    def statistics(self, data, call, name):
        t = data["session"]["calls"][call][9]
        return next(data["tensors"][t[k + 2]] for k in range(0, len(t), 3) if data["strings"][t[k]] == name)

    def mixed(self):
        return (Recording(self.dir / "mixed").call().call("op_b", y=(1, NAN, INF, -INF)).call("op_b", x=(NAN, 1, 1, 1), y=(NAN, 0, 0, 0))
                .call("op_c", status="failed", error={"type": "ValueError", "message": HOSTILE}).call(HOSTILE).call("outer", status="inputs_saved", depth=0)
                .call("inner", status="inputs_saved", depth=1).call("elsewhere", status="inputs_saved", thread=8))

    def test_what_a_page_says(self):
        data = self.report("--dir", self.mixed().folder)
        s = data["session"]
        self.assertEqual((len(s["calls"]), s["failed"], s["non_finite"], s["crashed"]), (8, 3, 1, 6))
        self.assertIn("First call that never returned: call 7, inner", self.out)
        self.assertIn("First NaN or Inf from finite inputs: call 2, op_b", self.out)
        x = self.statistics(data, 0, "x")
        self.assertEqual([data["strings"][i] for i in x[:3]], ["float32", "[4]", "cpu"])
        self.assertEqual(x[4:], [1, 4, 2.5, 1.11803, 0, 0, 4])  # min, max, mean, sqrt(5 / 4), NaN, Inf, elements
        self.assertEqual(self.statistics(data, 1, "result")[4:], [1, 1, 1, 0, 1, 2, 4])
        self.assertIn("NaN or Inf", self.page)

    def test_hostile_text_stays_text(self):
        self.report("--dir", self.mixed().folder)
        self.assertNotIn("<img", self.page)
        self.assertNotIn("\x1b", self.page + self.out)
        self.assertNotIn("\u202e", self.page + self.out)
        self.assertNotIn("\\u202e<", self.page)
        self.assertEqual(self.page.count("<script"), self.page.count("</script>"))
        self.assertNotRegex(self.page, r"""(src|href)=["']?(https?:)?//""")
        dom = self.browse("#call=5")
        self.assertIn("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;\\x1b[2J\\u202e&lt;!--", dom)
        self.assertNotIn("<img", dom)

    def test_filters_in_a_browser(self):
        self.report("--dir", self.mixed().folder)
        self.assertEqual(len(self.ops_shown(self.browse())), 8)
        self.assertEqual(self.ops_shown(self.browse("#op=op_b")), ["op_b", "op_b"])
        self.assertEqual(self.ops_shown(self.browse("#status=never+returned&sort=op")), ["elsewhere", "inner", "outer"])
        dom = self.browse("#status=NaN+or+Inf&call=2")
        self.assertEqual(self.ops_shown(dom), ["op_b", "op_b"])
        self.assertRegex(dom, r'<td class="num bad">1</td><td class="num bad">2</td>')
        self.assertIn("8 of 8 calls", self.browse("#q=eps"))
        self.assertIn("0 of 8 calls", self.browse("#q=nowhere"))

    def test_recordings_side_by_side(self):
        a = Recording(self.dir / "a").call().call("op_b").call("op_c", y=(1, 2, 3, 4)).call("op_d")
        b = Recording(self.dir / "b").call().call("extra").call("op_b").call("op_c", y=(1, 2, 3, 4.5)).call("op_d", x=(9, 9, 9, 9))
        data = self.report("--dir", a.folder, "--against", a.folder)["against"]
        self.assertEqual((data["first"], [p[:4] for p in data["pairs"]]), (-1, [[i, i, 0, 0] for i in range(4)]))
        self.assertIn("agree in all 4 calls", self.out)
        data = self.report("--dir", a.folder, "--against", b.folder)["against"]
        self.assertEqual([p[:4] for p in data["pairs"]], [[0, 0, 0, 0], [-1, 1, 3, 3], [1, 2, 0, 0], [2, 3, 0, 2], [3, 4, 2, 0]])
        self.assertEqual((data["first"], data["pairs"][3][5]), (1, 0.5))
        self.assertRegex(self.browse(), r'id="divergent"><b>First divergent call</b>: extra, only there')
        self.assertEqual(self.ops_shown(self.browse("#status=diverges")), ["extra", "op_c", "op_d"])
        self.assertIn("differs, inputs agree", self.browse())

    def test_perfetto(self):
        recording = self.mixed().call("beside", process_id=6, start_ns=10**9, wall_time_ns=10**18 + 2500)  # another process, between calls of the first
        done = flashinfer("report", "--dir", recording.folder, "--perfetto", self.dir / "trace.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = json.loads((self.dir / "trace.json").read_text())["traceEvents"]
        self.assertEqual([e["args"]["name"] for e in events if e["ph"] == "M"], ["h process 5", "thread 7", "thread 8", "h process 6", "thread 7"])
        slices = [e for e in events if e["ph"] != "M"]
        self.assertEqual([e["ts"] for e in slices], [0, 1, 1.5, 2, 3, 4, 5, 6, 7])
        self.assertEqual([e["pid"] for e in slices], [5, 5, 6] + [5] * 6)
        self.assertEqual([e["ph"] for e in slices], ["X"] * 6 + ["B"] * 3)  # B: without an end
        self.assertEqual((slices[0]["dur"], slices[0]["pid"], slices[0]["tid"]), (0.25, 5, 7))
        self.assertEqual((slices[0]["args"]["x"], slices[0]["args"]["candidate"]), ("float32 [4] cpu", "cpu"))

    def test_a_recording_of_the_library(self):
        made = flashinfer("cases", "rmsnorm", FLASHINFER_LOGLEVEL="10", FLASHINFER_LOGDEST=str(self.dir / "log"), FLASHINFER_DUMP_DIR=str(self.dir / "dump"),
                          FLASHINFER_DUMP_DEDUP="1", FLASHINFER_DUMP_MAX_COUNT="30")
        self.assertEqual(made.returncode, 0, made.stderr)
        data = self.report("--dir", self.dir / "dump", "--replay")
        self.assertEqual((len(data["session"]["calls"]), data["replay"]["passed"]), (30, 30))
        self.assertTrue(all(len(self.statistics(data, i, "input")) == 11 for i in range(30)))
        self.assertIn("<b>30 / 30</b>", self.browse())

    def test_bench_page(self):
        done = flashinfer("bench", "--op", "rmsnorm", "--args", "input=f32:64x64 weight=f32:64", "--candidates", "cpu,reference", "--seconds", "0.01",
                          "--html", self.dir / "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        dom = self.browse()
        self.assertIn("flashinfer bench --op rmsnorm", dom)
        self.assertRegex(dom, r"<td class=\"\">rmsnorm</td>.*<td class=\"\">reference</td>")

    def test_charts_without_chart_js(self):
        """Pages with charts.js in the place of Chart.js: a bar for each op, a point for each call, a line for each limit."""
        own = (ROOT / "flashinfer/cli/report/charts.js").read_text()

        def drawn(page):
            self.page = re.sub(r"(</script>\n)<script>\n.*?</script>", lambda m: f"{m[1]}<script>\n{own}</script>", (self.dir / page).read_text(), count=1, flags=re.S)
            (self.dir / "svg.html").write_text(self.page)
            return re.findall(r"<svg .*?</svg>", self.browse(page="svg.html"), re.S)

        self.report("--dir", Recording(self.dir / "calls").call().call("op_b", duration_us=100).call("op_b").call("op_c", status="failed").folder)
        bars, points = drawn("page.html")
        self.assertEqual((bars.count('<rect'), points.count("<circle")), (3, 3))  # the failed call has no duration
        self.assertIn(">op_b</text>", bars)
        self.assertEqual(flashinfer("bench", "--op", "rmsnorm", "--args", "input=f32:64x64 weight=f32:64", "--candidates", "cpu,reference", "--seconds", "0.01",
                                    "--html", self.dir / "page.html").returncode, 0)
        roof, times = drawn("page.html")
        self.assertEqual((roof.count("<circle"), roof.count("<polyline"), times.count("data-hit")), (2, 2, 2))

    def test_wrong_use(self):
        folder = Recording(self.dir / "one").call().folder
        for args, text in ((["--dir", folder], "neither -o nor --perfetto"), (["--dir", folder / "none", "-o", "x"], "Directory not found"),
                           (["--dir", folder, "--perfetto", "x", "--replay"], "needs -o"), (["--dir", folder, "-o", self.dir / "no/x"], "No such file")):
            done = flashinfer("report", *args)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
