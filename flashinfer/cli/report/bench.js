// SPDX-License-Identifier: Apache-2.0
// The page of `flashinfer bench --html`. data.rows: the objects of `flashinfer bench --json` with "repro" and
// "peak_of" (what the peak is measured with); data.machine: [[name, value]].
'use strict';
const rows = data.rows;
const key = r => `${r.op} ${r.case === 'given' ? r.args : r.case}`;
const short = (s, n) => (s.length > n ? s.slice(0, n - 1) + '…' : s);
// What the machine allows a row: its traffic at the bandwidth of a copy, its arithmetic at the peak, whichever takes longer.
const least = r => Math.max(r.copy_gb_per_s > 0 ? r.bytes / (r.copy_gb_per_s * 1e9) : 0, r.peak_gflop_per_s > 0 ? r.flops / (r.peak_gflop_per_s * 1e9) : 0);
const attained = r => (r.median_s > 0 ? least(r) / r.median_s : 0);
// Other libraries and rows that were timed in turns with it: columns <name>_s and <name>_ratio.
const others = r => Object.keys(r).filter(k => k.endsWith('_ratio') && r[k] !== null).map(k => ({name: k === 'over_ratio' ? r.over : k.slice(0, -6), seconds: r[k.replace('_ratio', '_s')], ratio: r[k]}));
const groups = [...new Set(rows.map(key))], candidates = [...new Set(rows.map(r => r.candidate))];
const largest = f => rows.reduce((a, r) => Math.max(a, f(r) || 0), 0);

main.append(el('div', {class: 'cards'}, card(groups.length, 'rows'), card(candidates.join(', ') || '-', 'candidates'),
  card(`${number(Number(largest(r => r.copy_gb_per_s).toPrecision(3)))} GB/s`, 'copy bandwidth, largest'),
  card(largest(r => r.peak_gflop_per_s) ? `${number(Math.round(largest(r => r.peak_gflop_per_s)))} GFLOP/s` : '-', 'arithmetic peak, largest'),
  card(rows.filter(r => r.check && r.check !== 'ok').length, 'failed checks', rows.some(r => r.check && r.check !== 'ok'))));
main.append(el('details', {}, el('summary', {}, 'Machine'), table(['', ''], data.machine, [], '')));

function roofline(parent) {
  const points = rows.filter(r => r.flops > 0 && r.bytes > 0);
  if (!points.length) return;
  const at = points.map(r => r.flops / r.bytes), bandwidth = largest(r => r.copy_gb_per_s);
  const peaks = [...new Set(points.map(r => r.peak_of))].map(kind => ({kind, at: points.reduce((m, r) => (r.peak_of === kind ? Math.max(m, r.peak_gflop_per_s) : m), 0)}))
    .filter(p => p.at > 0).sort((x, y) => y.at - x.at);
  const ridge = (peaks.length ? peaks[0].at : 0) / bandwidth, x0 = Math.min(...at) / 3, x1 = Math.max(...at, ridge) * 3;
  const line = (label, d, dash) => ({type: 'line', label, data: d, borderColor: style('--soft'), borderWidth: 1.5, borderDash: dash, pointRadius: 0, fill: false});
  const end = Math.max(x0, ridge || x1);
  chart(parent, 'Roofline: arithmetic (GFLOP/s) over intensity (FLOP per byte)', 420, {
    type: 'scatter',
    data: {datasets: [
      ...candidates.map((c, k) => ({label: c, backgroundColor: colour(k), pointRadius: 5, rows: points.filter(r => r.candidate === c),
        data: points.filter(r => r.candidate === c).map(r => ({x: r.flops / r.bytes, y: r.gflop_per_s}))})),
      line(`copy ${number(Number(bandwidth.toPrecision(3)))} GB/s`, [{x: x0, y: bandwidth * x0}, {x: end, y: bandwidth * end}], []),
      ...peaks.map((p, k) => line(`${p.kind} ${number(Math.round(p.at))} GFLOP/s`, [{x: Math.max(x0, p.at / bandwidth), y: p.at}, {x: x1, y: p.at}], k ? [5, 4] : []))]},
    options: {
      scales: {x: {type: 'logarithmic', min: x0, max: x1, ticks: {callback: powers}}, y: {type: 'logarithmic', ticks: {callback: powers}}},
      plugins: {tooltip: {callbacks: {label: t => { const r = (t.dataset.rows || [])[t.dataIndex]; return r ? `${short(key(r), 60)}: ${number(r.gflop_per_s)} GFLOP/s, ${(attained(r) * 100).toFixed(0)} % of the roof` : t.dataset.label; }}}},
    },
  });
}

function bars(parent) {
  const shown = groups.slice(0, 40), series = new Map();
  const put = (name, r, seconds, note) => {
    if (!series.has(name)) series.set(name, new Map());
    if (!series.get(name).has(key(r))) series.get(name).set(key(r), {seconds, note});
  };
  for (const r of rows) {
    put(r.candidate, r, r.median_s, `${time(r.p10_s * 1e6)} to ${time(r.p90_s * 1e6)}`);
    for (const o of others(r)) put(o.name, r, o.seconds, `${number(Number(o.ratio.toPrecision(3)))} of the row's time`);
  }
  const title = `Median time (µs), by candidate and library${groups.length > shown.length ? `, the first ${shown.length} rows` : ''}`;
  chart(parent, title, Math.max(200, 60 + shown.length * (14 + 14 * series.size)), {
    type: 'bar',
    data: {labels: shown.map(g => short(g, 36)), datasets: [...series].map(([name, of], k) => ({label: name, backgroundColor: colour(k), maxBarThickness: 22,
      data: shown.map(g => (of.has(g) ? of.get(g).seconds * 1e6 : null))}))},
    options: {
      indexAxis: 'y', scales: {x: {type: 'logarithmic', ticks: {callback: powers}}},
      plugins: {tooltip: {callbacks: {label: t => { const e = series.get(t.dataset.label).get(shown[t.dataIndex]); return `${t.dataset.label}: ${time(e.seconds * 1e6)} (${e.note})`; }}}},
    },
  });
}

if (rows.length) {
  const charts = main.appendChild(el('div', {class: 'charts'}));
  roofline(charts);
  bars(charts);
}

heading('Rows');
main.append(table(['op', 'case', 'candidate', 'median', 'p10', 'p90', 'x first', 'GB/s', 'GFLOP/s', 'of the limit', '', 'others', 'check'], rows.map(r => [
  r.op, el('td', {title: r.repro}, r.case === 'given' ? r.args : r.case), r.candidate, time(r.median_s * 1e6), time(r.p10_s * 1e6), time(r.p90_s * 1e6),
  r.over_first ? number(Number(r.over_first.toPrecision(3))) : '', number(Number(r.gb_per_s.toPrecision(4))), r.flops > 0 ? number(Number(r.gflop_per_s.toPrecision(4))) : '-',
  `${(attained(r) * 100).toFixed(0)} %`, bar(attained(r), `${(attained(r) * 100).toFixed(1)} % of what memory and arithmetic allow`),
  others(r).map(o => `${o.name} ${time(o.seconds * 1e6)}`).join(', '),
  el('td', {class: r.check && r.check !== 'ok' ? 'bad' : ''}, r.check || '')]), [3, 4, 5, 6, 7, 8, 9]));
main.append(el('details', {}, el('summary', {}, 'Commands that measure the rows again'), el('pre', {class: 'mono'}, rows.map(r => r.repro).join('\n'))));
document.documentElement.dataset.ready = '1';
