// SPDX-License-Identifier: Apache-2.0
// The page of a recording. The fragment of its address is its state: #op=rmsnorm&status=failed&q=text&sort=duration&call=12.
//
// data.strings and data.tensors are tables that the rest names by index.
//   tensor: [dtype, shape, device, note, min, max, mean, deviation, nan, inf, elements]; without statistics only the first four
//   session.calls[i]: [op, track, start us, duration us, status, candidate, sequence, depth, folder, [name, is output, tensor, ...],
//                      [name, text, ...], error, notes, config]
//   replay.calls[i]: [outcome, text, largest absolute difference, relative, us]
//   against.pairs: [call here, call in against.session, inputs, outputs, text, absolute, relative]; -1: only in the other recording
'use strict';
const OP = 0, TRACK = 1, START = 2, DURATION = 3, STATUS = 4, BY = 5, SEQUENCE = 6, FOLDER = 8, TENSORS = 9, VALUES = 10, ERROR = 11, NOTES = 12, CONFIG = 13;
const STATUSES = ['completed', 'failed', 'never returned', 'captured', 'unreadable'];
const AGREEMENTS = ['equal', 'close', 'differs', '-'];
const S = i => data.strings[i];
const calls = data.session.calls, other = data.against ? data.against.session.calls : [], replay = data.replay ? data.replay.calls : null;

// ---- rows of the table: pairs of calls, or calls ----
const rows = data.against ? data.against.pairs.map((p, n) => ({i: p[0], j: p[1], pair: p, n})) : calls.map((_, i) => ({i, j: -1, n: i}));
for (const r of rows) r.call = r.i >= 0 ? calls[r.i] : other[r.j];
function special(call) {
  let nan = 0, inf = 0;
  const t = call[TENSORS];
  for (let k = 2; k < t.length; k += 3) { const x = data.tensors[t[k]]; if (x.length > 4) { nan += x[8]; inf += x[9]; } }
  return [nan, inf];
}
for (const r of rows) [r.nan, r.inf] = special(r.call);
const rowOf = new Map(rows.filter(r => r.i >= 0).map(r => [r.i, r]));
const tensorText = (call, wanted) => {
  const t = call[TENSORS], out = [];
  for (let k = 0; k < t.length; k += 3) if (t[k + 1] === wanted) { const x = data.tensors[t[k + 2]]; out.push(`${S(t[k])} ${S(x[0])} ${S(x[1])}`); }
  return out.join(', ');
};
function agreement(r) {
  if (r.i < 0) return 'only there';
  if (r.j < 0) return 'only here';
  const [, , a, b] = r.pair;
  if (b === 2) return a === 2 ? 'differs, inputs too' : 'differs, inputs agree';
  if (a === 2) return 'inputs differ';
  return AGREEMENTS[b === 3 ? a : b];
}
const diverges = r => r.i < 0 || r.j < 0 || r.pair[2] === 2 || r.pair[3] === 2;
const outcome = r => (replay && r.i >= 0 ? S(replay[r.i][0]).replace('_', ' ') : '');
const failedReplay = r => outcome(r) !== '' && !['passed', 'not compared'].includes(outcome(r));

// ---- summary ----
const sum = (list, f) => list.reduce((a, c) => a + f(c), 0);
const ofStatus = n => calls.filter(c => c[STATUS] === n).length;
const ends = calls.reduce((a, c) => Math.max(a, c[START] + Math.max(0, c[DURATION])), 0);
const withNaN = rows.filter(r => r.i >= 0 && r.nan > 0).length, withInf = rows.filter(r => r.i >= 0 && r.inf > 0).length;
const outer = calls.filter(c => c[7] === 0);
main.append(el('div', {class: 'cards'},
  card(count(calls.length), 'calls'), card(new Set(calls.map(c => c[OP])).size, 'ops'), card(time(sum(outer, c => Math.max(0, c[DURATION]))), 'in calls'),
  card(time(ends), 'from first to last'), card(new Set(calls.map(c => c[TRACK])).size, 'threads'), card(ofStatus(1), 'failed', ofStatus(1)),
  card(ofStatus(2), 'never returned', ofStatus(2)), card(withNaN, 'calls with NaN', withNaN), card(withInf, 'calls with Inf', withInf),
  ...(data.replay ? [card(`${count(data.replay.passed)} / ${count(calls.length)}`, 'replays passed', data.replay.failed)] : []),
  ...(data.against ? [card(count(rows.filter(diverges).length), 'calls diverge', rows.some(diverges))] : [])));
function alertOf(what, i, bad, more = '') {
  if (i < 0) return;
  const c = calls[i];
  main.append(el('button', {class: bad ? 'alert bad' : 'alert', onclick: () => go(rowOf.get(i))}, el('b', {}, what), `: call ${i + 1}, ${S(c[OP])}`,
    c[ERROR] && S(c[ERROR]) ? ` - ${S(c[ERROR])}` : '', more));
}
alertOf('First call that never returned', data.session.crashed, true);
alertOf('First error', data.session.failed, true);
alertOf('First NaN or Inf from finite inputs', data.session.non_finite, true);
if (replay) alertOf('First replay that did not pass', (rows.find(r => r.i >= 0 && failedReplay(r)) || {i: -1}).i, true);
if (data.against) {
  const first = rows[data.against.first];
  main.append(first
    ? el('button', {class: 'alert bad', id: 'divergent', onclick: () => go(first)}, el('b', {}, 'First divergent call'), `: ${S(first.call[OP])}, ${agreement(first)} (call ${
        first.i >= 0 ? first.i + 1 : '-'} here, ${first.j >= 0 ? first.j + 1 : '-'} in ${data.against.session.name})`)
    : el('div', {class: 'alert good', id: 'divergent'}, `No call differs from ${data.against.session.name}.`));
}
for (const n of data.session.notes.slice(0, 20)) main.append(el('div', {class: 'alert'}, n));
if (data.session.notes.length > 20) main.append(el('div', {class: 'alert'}, `and ${data.session.notes.length - 20} more notes`));
main.append(el('details', {}, el('summary', {}, 'Machine and versions'), table(['', ''], data.session.machine, [], '')));

// ---- time by op ----
const ops = new Map();
for (const c of calls) {
  const o = ops.get(c[OP]) || {op: S(c[OP]), calls: 0, total: 0, max: 0, first: c[START]};
  ops.set(c[OP], o);
  ++o.calls;
  o.total += Math.max(0, c[DURATION]);
  o.max = Math.max(o.max, c[DURATION]);
}
const byTime = [...ops.values()].sort((a, b) => b.total - a.total || b.calls - a.calls);
const colours = new Map(byTime.map((o, i) => [o.op, i < 10 ? colour(i) : style('--soft')]));
if (byTime.length) {
  const charts = main.appendChild(el('div', {class: 'charts'})), top = byTime.slice(0, 12);
  const height = 340, unit = top[0].total >= 1e6 ? [1e6, 's'] : [1e3, 'ms'];
  chart(charts, `Time by op (${unit[1]})`, height, {
    type: 'bar',
    data: {labels: top.map(o => (o.op.length > 42 ? o.op.slice(0, 40) + '…' : o.op)), datasets: [{data: top.map(o => o.total / unit[0]), backgroundColor: top.map(o => colours.get(o.op)), maxBarThickness: 26}]},
    options: {indexAxis: 'y', plugins: {legend: {display: false}}, onClick: (_, hit) => hit.length && set({op: top[hit[0].index].op})},
  });
  const most = 20000;  // points; of more calls the longest are drawn
  const drawn = calls.map((c, i) => i).filter(i => calls[i][DURATION] > 0).sort((a, b) => calls[b][DURATION] - calls[a][DURATION]).slice(0, most);
  chart(charts, `When calls began (ms) and how long they took (µs)${drawn.length === most ? `, the longest ${count(most)}` : ''}`, height, {
    type: 'scatter',
    data: {datasets: [{data: drawn.map(i => ({x: calls[i][START] / 1e3, y: calls[i][DURATION]})), pointRadius: drawn.length > 2000 ? 1.5 : 3,
      pointBackgroundColor: drawn.map(i => (calls[i][STATUS] === 1 ? style('--bad') : colours.get(S(calls[i][OP])))), pointBorderWidth: 0}]},
    options: {
      scales: {y: {type: 'logarithmic', ticks: {callback: powers}}},
      plugins: {legend: {display: false}, tooltip: {callbacks: {label: t => { const c = calls[drawn[t.dataIndex]]; return `${drawn[t.dataIndex] + 1}: ${S(c[OP])}, ${time(c[DURATION])}`; }}}},
      onClick: (_, hit) => hit.length && go(rowOf.get(drawn[hit[0].index])),
    },
  });
}
heading('Ops');
main.append(table(['op', 'calls', 'total', 'mean', 'longest', 'share'], byTime.map(o => [
  el('button', {class: 'link', onclick: () => set({op: o.op})}, o.op), count(o.calls), time(o.total), time(o.total / o.calls), time(o.max),
  bar(o.total / Math.max(1e-9, byTime[0].total), '')]), [1, 2, 3, 4]));

// ---- calls ----
const columns = [
  {key: 'call', title: '#', width: '60px', right: true, text: r => (r.i >= 0 ? r.i + 1 : '-'), sort: r => r.n},
  {key: 'op', title: 'op', width: 'minmax(220px, 1.6fr)', text: r => S(r.call[OP]), sort: r => S(r.call[OP])},
  {key: 'status', title: 'status', width: '100px', text: r => STATUSES[r.call[STATUS]], cls: r => ['', 'bad', 'bad', 'warn', 'bad'][r.call[STATUS]], sort: r => r.call[STATUS]},
  {key: 'start', title: 'start', width: '90px', right: true, text: r => time(r.call[START]), sort: r => r.call[START]},
  {key: 'duration', title: 'duration', width: '90px', right: true, text: r => time(r.call[DURATION]), sort: r => r.call[DURATION]},
  {key: 'by', title: 'candidate', width: '90px', text: r => S(r.call[BY]), sort: r => S(r.call[BY])},
  {key: 'nan', title: 'NaN', width: '50px', right: true, text: r => (r.nan ? count(r.nan) : ''), cls: () => 'bad', sort: r => r.nan},
  {key: 'inf', title: 'Inf', width: '50px', right: true, text: r => (r.inf ? count(r.inf) : ''), cls: () => 'bad', sort: r => r.inf},
  ...(replay ? [
    {key: 'replay', title: 'replay', width: '110px', text: outcome, cls: r => (failedReplay(r) ? 'bad' : ''), sort: outcome},
    {key: 'error', title: 'max error', width: '90px', right: true, text: r => (r.i >= 0 ? number(replay[r.i][2]) : ''), sort: r => (r.i >= 0 ? replay[r.i][2] : -1)}] : []),
  ...(data.against ? [
    {key: 'there', title: 'there', width: '90px', right: true, text: r => (r.j >= 0 ? time(other[r.j][DURATION]) : '-'), sort: r => (r.j >= 0 ? other[r.j][DURATION] : -1)},
    {key: 'diff', title: 'compared', width: '160px', text: agreement, cls: r => (diverges(r) ? 'bad' : ''), sort: agreement},
    {key: 'abs', title: 'max abs', width: '80px', right: true, text: r => (r.pair[5] ? number(r.pair[5]) : ''), sort: r => r.pair[5]}] : []),
  {key: 'tensors', title: 'inputs', width: 'minmax(200px, 2fr)', text: r => tensorText(r.call, 0), sort: r => tensorText(r.call, 0)},
];

function tensorRows(call, map) {
  const t = call ? call[TENSORS] : [];
  for (let k = 0; k < t.length; k += 3) {
    const key = `${t[k + 1]}${S(t[k])}`;
    if (!map.has(key)) map.set(key, {name: S(t[k]), output: t[k + 1]});
    map.get(key)[call === calls[call.at] ? 'a' : 'b'] = data.tensors[t[k + 2]];
  }
}
const flag = n => el('td', {class: n > 0 ? 'num bad' : 'num soft'}, count(n));
function statistics(x, against, cls) {
  if (!x) return Array.from({length: 7}, (_, k) => el('td', {class: k === 0 ? cls : ''}, k === 0 ? 'absent' : ''));
  const is = k => (against && against.length > 4 && x.length > 4 && against[k] !== x[k] ? 'num warn' : 'num');
  const where = S(x[2]) === 'cpu' ? '' : ` ${S(x[2])}`;
  const head = el('td', {class: cls}, `${S(x[0])} ${S(x[1])}${where}`);
  if (x.length <= 4) return [head, el('td', {class: 'soft', colspan: 6}, S(x[3]) || 'no statistics')];
  return [head, ...[4, 5, 6, 7].map(k => el('td', {class: is(k)}, number(x[k]))), flag(x[8]), flag(x[9])];
}
calls.forEach((c, i) => { c.at = i; });
other.forEach(c => { c.at = -1; });
function detail(r) {
  const map = new Map(), here = r.i >= 0 ? calls[r.i] : null, there = r.j >= 0 ? other[r.j] : null;
  if (here) tensorRows(here, map);
  if (there) tensorRows(there, map);
  const names = ['tensor', 'min', 'max', 'mean', 'std', 'NaN', 'Inf'];
  const head = ['', '', ...names, ...(data.against ? names : []), ''];
  const lines = [...map.values()].map(t => el('tr', {}, el('td', {}, t.name), el('td', {class: 'soft'}, t.output ? 'out' : 'in'), statistics(t.a, null, ''),
    data.against ? statistics(t.b, t.a, 'other') : [], el('td', {class: 'soft'}, (t.a || t.b).length > 4 ? S((t.a || t.b)[3]) : '')));
  const parts = [];
  const text = (label, value, cls) => value && parts.push(el('pre', {class: cls || ''}, `${label}: ${value}`));
  const call = r.call;
  text('error', S(call[ERROR]), 'bad');
  text('notes', S(call[NOTES]), 'warn');
  if (replay && r.i >= 0) text(`replay, ${outcome(r)}, ${time(replay[r.i][4])}`, S(replay[r.i][1]) || 'every output agrees', failedReplay(r) ? 'bad' : '');
  if (r.pair && S(r.pair[4])) text('compared', S(r.pair[4]), diverges(r) ? 'bad' : '');
  parts.push(el('table', {}, el('thead', {}, el('tr', {}, head.map((h, k) => el('th', {class: k > 2 && h !== 'tensor' ? 'num' : ''}, h)))), el('tbody', {}, lines)));
  const values = call[VALUES];
  if (values.length) parts.push(table(['', ''], Array.from({length: values.length / 2}, (_, k) => [S(values[2 * k]), el('td', {class: 'value mono'}, S(values[2 * k + 1]))]), [], ''));
  text('config', S(call[CONFIG]), 'soft');
  parts.push(el('pre', {class: 'soft'}, `sequence ${call[SEQUENCE]}, depth ${call[7]}, ${S(call[TRACK])}, ${call[FOLDER]}`));
  return parts;
}

const list = new VirtualTable(columns, {
  detail,
  rowClass: r => (r.i >= 0 && r.i === data.session.crashed ? 'crash' : data.against && r.n === data.against.first ? 'first' : ''),
  onsort: key => set({sort: key, down: state.sort === key && !state.down ? '1' : ''}),
  onopen: r => set({call: r ? String(r.n + 1) : ''}, true),
});

// ---- state ----
const filters = {
  ...Object.fromEntries(STATUSES.map((s, i) => [s, r => r.call[STATUS] === i])),
  'NaN or Inf': r => r.nan + r.inf > 0,
  ...(replay ? {'replay did not pass': failedReplay} : {}),
  ...(data.against ? {diverges} : {}),
};
let state = {};
const search = el('input', {type: 'search', placeholder: 'text: op, error, tensor, value, folder', oninput: () => set({q: search.value})});
const opList = el('select', {onchange: () => set({op: opList.value})}, el('option', {value: ''}, 'all ops'), byTime.map(o => el('option', {value: o.op}, o.op)));
const statusList = el('select', {onchange: () => set({status: statusList.value})}, el('option', {value: ''}, 'all calls'), Object.keys(filters).map(f => el('option', {value: f}, f)));
const shown = el('span', {class: 'soft', id: 'shown'});
heading('Calls');
main.append(el('div', {class: 'tools'}, search, opList, statusList, el('button', {onclick: () => set({q: '', op: '', status: '', sort: '', down: ''})}, 'reset'), shown), list.element);

function haystack(r) {
  if (r.text === undefined) {
    const c = r.call;
    r.text = [S(c[OP]), S(c[ERROR]), S(c[NOTES]), S(c[BY]), S(c[CONFIG]), c[FOLDER], tensorText(c, 0), tensorText(c, 1), ...c[VALUES].map(S)].join('\n').toLowerCase();
  }
  return r.text;
}
function apply() {
  const q = (state.q || '').toLowerCase(), f = filters[state.status];
  let chosen = rows.filter(r => (!state.op || S(r.call[OP]) === state.op) && (!f || f(r)) && (!q || haystack(r).includes(q)));
  const column = columns.find(c => c.key === state.sort);
  if (column) {
    const keyed = chosen.map(r => [column.sort(r), r]), sign = state.down ? -1 : 1;
    keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1].n - b[1].n));
    chosen = keyed.map(k => k[1]);
  }
  search.value = state.q || '';
  opList.value = state.op || '';
  statusList.value = state.status || '';
  shown.textContent = `${count(chosen.length)} of ${count(rows.length)} calls`;
  list.show(chosen, state.sort, state.down);
}
function set(changes, quiet) {
  state = Object.fromEntries(Object.entries({...state, ...changes}).filter(e => e[1]));
  history.replaceState(null, '', '#' + new URLSearchParams(state));
  if (!quiet) apply();
}
function go(r) {
  set({q: '', op: '', status: '', sort: '', down: '', call: String(r.n + 1)});
  list.reveal(r);
  list.element.scrollIntoView({block: 'nearest'});
}
function read() {
  state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  apply();
  const r = rows[Number(state.call) - 1];
  if (r) list.reveal(r);
}
window.addEventListener('hashchange', read);
read();
document.documentElement.dataset.ready = '1';
