// SPDX-License-Identifier: Apache-2.0
// The part of Chart.js' interface that the pages use, drawn as SVG: horizontal bars, and points with straight lines. It is embedded
// where the machine that built the command had no Chart.js.
'use strict';

/** From values to pixels in [from, to], linear or logarithmic, with the values of its ticks. */
function chartAxis(values, {type, min, max, ticks = {}} = {}, from, to) {
  const log = type === 'logarithmic', f = log ? Math.log10 : v => v, known = values.filter(v => v !== null && (!log || v > 0)).map(f);
  const all = known.length ? known : [0, 1], least = all.reduce((a, b) => Math.min(a, b)), most = all.reduce((a, b) => Math.max(a, b));
  const lo = min === undefined ? (log ? Math.floor(least) : Math.min(0, least)) : f(min);
  const hi = Math.max(max === undefined ? (log ? Math.ceil(most) : most) : f(max), lo + (log ? 1 : 1e-9));
  const ten = 10 ** Math.floor(Math.log10((hi - lo) / 4)), step = log ? 1 : [1, 2, 5, 10].map(k => k * ten).find(s => (hi - lo) / s <= 6);
  const at = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + 1e-9; ++k) at.push(log ? 10 ** (k * step) : k * step);
  const text = ticks.callback || (v => String(Number(v.toPrecision(6))));
  return {log, to: v => from + (Math.max(lo, f(v)) - lo) / (hi - lo) * (to - from), ticks: at.map(v => [v, text(v)])};
}

class Chart {
  static defaults = {font: {}};

  constructor(canvas, {type, data, options = {}}) {
    Object.assign(this, {type, data, options, box: canvas.parentNode, hits: []});
    this.svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    for (const [k, v] of Object.entries({width: '100%', height: '100%', 'font-size': 11, 'font-family': Chart.defaults.font.family})) this.svg.setAttribute(k, v);
    canvas.replaceWith(this.svg);
    this.draw();
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.svg.addEventListener('mouseover', e => { this.caption.textContent = this.label(this.hits[e.target.dataset.hit]); });
    this.svg.addEventListener('click', e => { const hit = this.hits[e.target.dataset.hit]; if (hit && options.onClick) options.onClick(e, [{index: hit.dataIndex}]); });
  }
  draw() {
    const w = this.box.clientWidth || 800, h = this.box.clientHeight || 300;
    if (w === this.w && h === this.h) return;
    Object.assign(this, {w, h, hits: []});
    this.svg.replaceChildren();
    this.svg.setAttribute('viewBox', `0 0 ${w} ${h}`);
    this.caption = this.make('text', {x: w - 4, y: h - 2, 'text-anchor': 'end', fill: Chart.defaults.color});  // what is below the pointer
    this.top = this.legend() ? 26 : 8;
    if (this.type === 'bar') this.bars();
    else this.points();
  }
  make(tag, attributes, text) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return this.svg.appendChild(e);
  }
  /** An element that the pointer finds: element `dataIndex` of a dataset. */
  hit(tag, attributes, dataset, dataIndex) {
    this.make(tag, attributes).dataset.hit = this.hits.push({dataset, dataIndex}) - 1;
  }
  label(hit) {
    if (!hit) return '';
    const own = this.options.plugins?.tooltip?.callbacks?.label, value = hit.dataset.data[hit.dataIndex];
    return own ? own(hit) : `${(this.data.labels || [])[hit.dataIndex] || hit.dataset.label || ''}: ${Number(Number(value).toPrecision(5))}`;
  }
  legend() {
    if (this.options.plugins?.legend?.display === false) return false;
    let x = 8;
    for (const d of this.data.datasets) {
      this.make('rect', {x, y: 6, width: 10, height: 10, fill: this.colour(d, 0)});
      this.make('text', {x: x + 14, y: 15, fill: Chart.defaults.color}, d.label);
      x += 28 + 6.2 * String(d.label).length;
    }
    return true;
  }
  colour(d, i) {
    const c = d.pointBackgroundColor || d.backgroundColor || d.borderColor;
    return Array.isArray(c) ? c[i] : c;
  }
  grid(axis, vertical, low, high) {
    for (const [v, text] of axis.ticks) {
      const p = axis.to(v), [x1, x2, y1, y2] = vertical ? [p, p, low, high] : [low, high, p, p];
      this.make('line', {x1, x2, y1, y2, stroke: Chart.defaults.borderColor});
      this.make('text', {x: vertical ? p : low - 5, y: vertical ? high + 14 : p + 4, 'text-anchor': vertical ? 'middle' : 'end', fill: Chart.defaults.color}, text);
    }
  }
  bars() {
    const {labels, datasets} = this.data, left = Math.min(0.42 * this.w, 12 + 6.3 * labels.reduce((a, l) => Math.max(a, l.length), 0)), bottom = this.h - 32;
    const axis = chartAxis(datasets.flatMap(d => d.data), this.options.scales?.x, left, this.w - 12), band = (bottom - this.top) / Math.max(1, labels.length);
    this.grid(axis, true, this.top, bottom);
    const size = Math.min(22, 0.8 * band / datasets.length), zero = axis.log ? left : axis.to(0);
    labels.forEach((label, i) => {
      const middle = this.top + band * (i + 0.5);
      this.make('text', {x: left - 6, y: middle + 4, 'text-anchor': 'end', fill: Chart.defaults.color}, label);
      datasets.forEach((d, k) => {
        if (d.data[i] === null || (axis.log && !(d.data[i] > 0))) return;
        this.hit('rect', {x: zero, y: middle + size * (k - datasets.length / 2), width: Math.max(1, axis.to(d.data[i]) - zero), height: size, fill: this.colour(d, i)}, d, i);
      });
    });
  }
  points() {
    const all = this.data.datasets.flatMap(d => d.data), left = 64, bottom = this.h - 32, {x: xs, y: ys} = this.options.scales || {};
    const x = chartAxis(all.map(p => p.x), xs, left, this.w - 12), y = chartAxis(all.map(p => p.y), ys, bottom, this.top);
    this.grid(x, true, this.top, bottom);
    this.grid(y, false, left, this.w - 12);
    for (const d of this.data.datasets) {
      if (d.type === 'line') {
        this.make('polyline', {points: d.data.map(p => `${x.to(p.x)},${y.to(p.y)}`).join(' '), fill: 'none', stroke: d.borderColor, 'stroke-width': d.borderWidth, 'stroke-dasharray': d.borderDash.join(' ')});
        continue;
      }
      d.data.forEach((p, i) => this.hit('circle', {cx: x.to(p.x), cy: y.to(p.y), r: d.pointRadius, fill: this.colour(d, i)}, d, i));
    }
  }
}
