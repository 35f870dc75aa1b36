"""CSS of the page, for screen, dark mode, phone and print."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light; --paper: #fff; --ink: #1c2430; --faint: #5d6779; --rule: #d8dde5;
  --back: #f1f4f8; --plain: #3f6fb5; --bad: #c2402d; --good: #b9cfe9; --idle: #a9b1be;
  --link: #1f58a8; --grid: #0002; --ok: #2b7a4b; --warning: #9a6200; --unknown: #667085; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 1rem; color: var(--ink); background: var(--paper);
  font: 15px/1.45 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 .25rem; border-bottom: 2px solid var(--ink); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--link); } :target > h2 { background: var(--back); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0;
  margin: .8rem 0 0; }
.verdicts { list-style: none; padding: 0; margin: .5rem 0; }
.verdicts li { display: flex; gap: .6rem; padding: .35rem 0; border-bottom: 1px solid var(--rule); }
.verdicts small { color: var(--faint); } .verdicts :is(code, time) { white-space: nowrap; }
.verdicts span { min-width: 0; overflow-wrap: anywhere; }
.verdicts b { flex: 0 0 5.2rem; align-self: start; text-align: center; border-radius: .25rem;
  font-size: .8rem; line-height: 1.5rem; color: #fff; background: var(--unknown); }
.verdicts .ok b { background: var(--ok); } .verdicts .warning b { background: var(--warning); }
.verdicts .critical b { background: var(--bad); }
figure { margin: .8rem 0 1rem; } figcaption { font-weight: 600; margin-bottom: .3rem; }
.row { display: flex; align-items: center; gap: .6rem; margin: 2px 0; }
.label { flex: 0 0 15rem; text-align: right; font-size: .82rem; overflow-wrap: anywhere;
  line-height: 1.15; }
.scale { align-self: stretch; display: flex; flex-direction: column;
  justify-content: space-between; }
.words { flex: 0 0 9.5rem; font-size: .82rem; white-space: nowrap; }
.row svg { flex: 1 1 0; min-width: 0; height: 1.1rem; background: var(--back); }
.row svg.area { height: 8rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; margin: .2rem 0; font-size: .82rem; }
.legend svg { width: .8rem; height: .8rem; vertical-align: -.08rem; }
.ticks { flex: 1 1 0; position: relative; height: 2.2rem; font-size: .78rem; line-height: 1.2;
  color: var(--faint); }
.ticks span { position: absolute; transform: translateX(-50%); text-align: center;
  white-space: nowrap; }
.ticks .last { transform: translateX(-90%); text-align: right; }
rect.plain, path.plain { fill: var(--plain); } rect.bad, path.bad { fill: var(--bad); }
rect.good { fill: var(--good); } rect.idle { fill: var(--idle); }
rect.point { fill: transparent; } rect.point:hover { fill: var(--grid); }
path.grid { fill: none; stroke: var(--grid); vector-effect: non-scaling-stroke; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; min-width: 100%; }
th, td { padding: .25rem .6rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
td { max-width: 22rem; overflow-wrap: break-word; }
th { color: var(--faint); font-weight: 600; } .number { text-align: right; }
td.number, td.time { white-space: nowrap; }
th.number + th:not(.number), td.number + td:not(.number) { padding-left: 1rem; }
.more, .command { color: var(--faint); font-size: .85rem; } .command { max-width: none; }
.command span { white-space: nowrap; }
code { font-size: .85rem; color: var(--ink); background: var(--back); padding: .1rem .3rem;
  overflow-wrap: anywhere; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --paper: #14181f; --ink: #e3e7ee; --faint: #9aa5b6; --rule: #2c3440;
    --back: #1f2630; --plain: #6f9fe0; --bad: #c84a37; --good: #35506f; --idle: #5b6472;
    --link: #8cb8f5; --grid: #fff2; --unknown: #566073; }
}
@media screen and (max-width: 40rem) {
  .label { flex-basis: 6.5rem; } .ticks .minor { display: none; }
  .bar { flex-wrap: wrap; gap: 0 .6rem; margin: .3rem 0; }
  .bar .label { flex-basis: 100%; text-align: left; } .words { flex-basis: 9rem; }
  .verdicts b { flex-basis: 4.6rem; }
  dl { gap: .1rem .6rem; font-size: .9rem; }
  table, tbody { display: block; } thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .35rem 0;
    border-bottom: 1px solid var(--rule); }
  td, td.number + td:not(.number) { border: 0; padding: 0; max-width: 100%; text-align: left; }
  td:first-child { flex-basis: 100%; font-weight: 600; }
  td::before { content: attr(data-label) " "; color: var(--faint); font-weight: 400; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; } a { color: inherit; text-decoration: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .wide { overflow: visible; } table { font-size: 8.5pt; }
  p, figure, tr, .verdicts li { break-inside: avoid; } h2, h3, h2 + p { break-after: avoid; }
  tr:nth-child(-n+3), tr:nth-last-child(-n+2), .more, .command { break-before: avoid; }
  thead { display: table-header-group; }
}
"""
