// SPDX-License-Identifier: Apache-2.0
// What both pages share. Text of a recording reaches the document only through textContent.
'use strict';
window.addEventListener('error', e => { document.documentElement.dataset.error = e.message; });
const data = JSON.parse(document.getElementById('data').textContent);
const main = document.getElementById('main');

/** An element with attributes (class, title, onclick, ...) and children: elements or text. */
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== null) e.setAttribute(k, v);
  }
  e.append(...children.flat().filter(c => c !== null && c !== undefined).map(c => (c instanceof Node ? c : String(c))));
  return e;
}

// ---- numbers as text ----
const count = n => n.toLocaleString('en-US');
function time(us) {
  if (us === null || us < 0) return '-';
  if (us < 1000) return Number(us.toPrecision(3)) + ' µs';
  if (us < 1e6) return (us / 1e3).toPrecision(4) + ' ms';
  return (us / 1e6).toPrecision(4) + ' s';
}
function number(v) {
  if (v === null || v === undefined) return '-';
  if (Number.isInteger(v) && Math.abs(v) < 1e7) return String(v);
  return Math.abs(v) >= 1e-3 && Math.abs(v) < 1e6 ? String(Number(v.toPrecision(5))) : v.toExponential(3);
}

// ---- parts of a page ----
const card = (value, label, bad) => el('div', {class: bad ? 'card bad' : 'card'}, el('b', {}, value), el('span', {}, label));
const heading = text => main.append(el('h2', {}, text));

/** A table of rows of text or elements; `right` has the indices of columns of numbers. */
function table(head, rows, right = [], cls = 'wide') {
  const side = i => (right.includes(i) ? 'num' : '');
  return el('table', {class: cls},
    el('thead', {}, el('tr', {}, head.map((h, i) => el('th', {class: side(i)}, h)))),
    el('tbody', {}, rows.map(r => el('tr', {}, r.map((c, i) => (c instanceof HTMLTableCellElement ? c : el('td', {class: side(i)}, c)))))));
}
const bar = (share, title) => {
  const b = el('span', {class: 'bar', title});
  b.style.width = `${Math.max(0, Math.min(1, share)) * 120}px`;
  return b;
};

// ---- charts: Chart.js, where it was there when the command was built, else charts.js ----
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = i => `hsl(${(i * 137.5 + 212) % 360} 58% ${matchMedia('(prefers-color-scheme: dark)').matches ? 62 : 46}%)`;
function chart(parent, title, height, config) {
  const box = el('div', {class: 'chart'}, el('canvas'));
  box.style.height = `${height}px`;
  parent.append(el('div', {}, el('h2', {}, title), box));
  Chart.defaults.color = style('--soft');
  Chart.defaults.borderColor = style('--line');
  Chart.defaults.font.family = 'system-ui, sans-serif';
  config.options = {animation: false, responsive: true, maintainAspectRatio: false, ...config.options};
  return new Chart(box.firstChild, config);
}
/** Writes powers of ten, and nothing at other ticks of a logarithmic axis. */
const powers = v => (Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6) ? number(v) : '');

/** A list of rows of one height, of which only those in view are in the document; one of them may be open. */
class VirtualTable {
  static height = 26;
  /** columns: {key, title, width, right, text(row), cls(row)}; detail(row) gives the element under an open row. */
  constructor(columns, {detail, rowClass, onsort, onopen}) {
    Object.assign(this, {columns, detail, rowClass, onsort, onopen, rows: [], open: null, openHeight: 0, from: -1});
    this.grid = columns.map(c => c.width).join(' ');
    this.head = el('div', {class: 'vhead'});
    this.space = el('div');
    this.window = el('div', {class: 'window'});
    this.body = el('div', {class: 'vbody', tabindex: 0, onscroll: () => this.draw()}, this.space, this.window);
    this.element = el('div', {}, this.head, this.body);
    window.addEventListener('resize', () => this.draw(true));
  }
  show(rows, sort, descending) {
    this.rows = rows;
    if (this.open !== null && !rows.includes(this.open)) this.open = null;
    this.head.style.gridTemplateColumns = this.grid;
    this.head.replaceChildren(...this.columns.map(c => el('button', {class: c.right ? 'num' : '', onclick: () => this.onsort(c.key)},
      c.title + (c.key === sort ? (descending ? ' ▼' : ' ▲') : ''))));
    this.draw(true);
  }
  /** Opens a row and brings it into view. */
  reveal(row) {
    this.open = row;
    const at = this.rows.indexOf(row);
    this.draw(true);
    if (at >= 0) this.body.scrollTop = Math.max(0, (at - 2) * VirtualTable.height);
    this.draw(true);
  }
  toggle(row) {
    this.open = this.open === row ? null : row;
    this.onopen(this.open);
    this.draw(true);
  }
  draw(again) {
    const h = VirtualTable.height, at = this.open === null ? -1 : this.rows.indexOf(this.open), extra = at < 0 ? 0 : this.openHeight;
    let top = this.body.scrollTop;
    if (at >= 0 && top > (at + 1) * h) top = Math.max((at + 1) * h, top - extra);
    const from = Math.max(0, Math.floor(top / h) - 10), to = Math.min(this.rows.length, from + Math.ceil(this.body.clientHeight / h) + 30);
    if (!again && from === this.from) return;
    this.from = from;
    const shown = [];
    for (let i = from; i < to; ++i) {
      const row = this.rows[i];
      const line = el('div', {class: `vrow ${this.rowClass(row)}${i === at ? ' open' : ''}`, onclick: () => this.toggle(row)},
        this.columns.map(c => el('div', {class: `cell ${c.right ? 'num' : ''} ${c.cls ? c.cls(row) : ''}`, title: c.text(row)}, c.text(row))));
      line.style.gridTemplateColumns = this.grid;
      shown.push(line);
      if (i === at) shown.push(el('div', {class: 'detail'}, this.detail(row)));
    }
    this.window.replaceChildren(...shown);
    const detail = this.window.querySelector('.detail');
    if (detail) this.openHeight = detail.offsetHeight;
    this.window.style.top = `${from * h + (at >= 0 && from > at ? this.openHeight : 0)}px`;
    this.space.style.height = `${this.rows.length * h + (at < 0 ? 0 : this.openHeight)}px`;
  }
}
