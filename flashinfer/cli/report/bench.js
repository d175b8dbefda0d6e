// SPDX-License-Identifier: Apache-2.0
// The page of `flashinfer bench --html`. data.rows: the objects of `flashinfer bench --json` with "repro"; data.machine: [[name, value]].
'use strict';
const rows = data.rows;
const key = r => `${r.op} ${r.case === 'given' ? r.args : r.case}`;
const short = (s, n) => (s.length > n ? s.slice(0, n - 1) + '…' : s);
// What the machine allows a row: its traffic at the bandwidth of a copy, its arithmetic at the peak, whichever takes longer.
const least = r => Math.max(r.copy_gb_per_s > 0 ? r.bytes / (r.copy_gb_per_s * 1e9) : 0, r.peak_gflop_per_s > 0 ? r.flops / (r.peak_gflop_per_s * 1e9) : 0);
const attained = r => (r.median_s > 0 ? least(r) / r.median_s : 0);
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
  const peaks = [];  // measurements within 20 % of each other are one limit
  for (const p of [...new Set(points.map(r => r.peak_gflop_per_s))].filter(p => p > 0).sort((a, b) => b - a)) if (!peaks.length || p < peaks.at(-1) * 0.8) peaks.push(p);
  const ridge = (peaks[0] || 0) / bandwidth, x0 = Math.min(...at) / 3, x1 = Math.max(...at, ridge) * 3;
  const line = (label, d, dash) => ({type: 'line', label, data: d, borderColor: style('--soft'), borderWidth: 1.5, borderDash: dash, pointRadius: 0, fill: false});
  const end = Math.max(x0, ridge || x1);
  chart(parent, 'Roofline: arithmetic (GFLOP/s) over intensity (FLOP per byte)', 420, {
    type: 'scatter',
    data: {datasets: [
      ...candidates.map((c, k) => ({label: c, backgroundColor: colour(k), pointRadius: 5, rows: points.filter(r => r.candidate === c),
        data: points.filter(r => r.candidate === c).map(r => ({x: r.flops / r.bytes, y: r.gflop_per_s}))})),
      line(`copy ${number(Number(bandwidth.toPrecision(3)))} GB/s`, [{x: x0, y: bandwidth * x0}, {x: end, y: bandwidth * end}], []),
      ...peaks.map((p, k) => line(`peak ${number(Math.round(p))} GFLOP/s`, [{x: Math.max(x0, p / bandwidth), y: p}, {x: x1, y: p}], k ? [5, 4] : []))]},
    options: {
      scales: {x: {type: 'logarithmic', min: x0, max: x1, ticks: {callback: powers}}, y: {type: 'logarithmic', ticks: {callback: powers}}},
      plugins: {tooltip: {callbacks: {label: t => { const r = (t.dataset.rows || [])[t.dataIndex]; return r ? `${short(key(r), 60)}: ${number(r.gflop_per_s)} GFLOP/s, ${(attained(r) * 100).toFixed(0)} % of the roof` : t.dataset.label; }}}},
    },
  });
}

function bars(parent) {
  const shown = groups.slice(0, 40), unit = 1e6;
  const of = (g, c) => rows.find(r => key(r) === g && r.candidate === c);
  chart(parent, `Median time (µs), by candidate${groups.length > shown.length ? `, the first ${shown.length} rows` : ''}`, Math.max(200, 60 + shown.length * (14 + 14 * candidates.length)), {
    type: 'bar',
    data: {labels: shown.map(g => short(g, 46)), datasets: candidates.map((c, k) => ({label: c, backgroundColor: colour(k), maxBarThickness: 22, data: shown.map(g => { const r = of(g, c); return r ? r.median_s * unit : null; })}))},
    options: {
      indexAxis: 'y', scales: {x: {type: 'logarithmic', ticks: {callback: powers}}},
      plugins: {tooltip: {callbacks: {label: t => { const r = of(shown[t.dataIndex], t.dataset.label); return `${t.dataset.label}: ${time(r.median_s * unit)} (${time(r.p10_s * unit)} to ${time(r.p90_s * unit)})`; }}}},
    },
  });
}

if (hasCharts && rows.length) {
  const charts = main.appendChild(el('div', {class: 'charts'}));
  roofline(charts);
  bars(charts);
} else if (!hasCharts) {
  main.append(el('p', {class: 'soft'}, 'No charts: the command was built without Chart.js. The table holds the same numbers.'));
}

heading('Rows');
main.append(table(['op', 'case', 'candidate', 'median', 'p10', 'p90', 'x first', 'GB/s', 'GFLOP/s', 'of the limit', '', 'check'], rows.map(r => [
  r.op, el('td', {title: r.repro}, r.case === 'given' ? r.args : r.case), r.candidate, time(r.median_s * 1e6), time(r.p10_s * 1e6), time(r.p90_s * 1e6),
  r.over_first ? number(Number(r.over_first.toPrecision(3))) : '', number(Number(r.gb_per_s.toPrecision(4))), r.flops > 0 ? number(Number(r.gflop_per_s.toPrecision(4))) : '-',
  `${(attained(r) * 100).toFixed(0)} %`, bar(attained(r), `${(attained(r) * 100).toFixed(1)} % of what memory and arithmetic allow`),
  el('td', {class: r.check && r.check !== 'ok' ? 'bad' : ''}, r.check || '')]), [3, 4, 5, 6, 7, 8, 9]));
main.append(el('details', {}, el('summary', {}, 'Commands that measure the rows again'), el('pre', {class: 'mono'}, rows.map(r => r.repro).join('\n'))));
document.documentElement.dataset.ready = '1';
