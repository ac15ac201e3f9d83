"""The page's one style sheet: nothing is fetched; narrow screens, wide screens and paper."""

from __future__ import annotations

from typing import Final

CSS: Final = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0;font:1rem/1.5 system-ui,sans-serif;color:#1f2328;background:#fff}
main{max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.2rem;margin:0 0 .75rem}
section{margin:2rem 0;padding-top:1rem;border-top:1px solid #d1d9e0}
p{margin:.5rem 0;max-width:46rem}
code,.id{font:.875rem/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.command{box-decoration-break:clone;-webkit-box-decoration-break:clone;background:#f6f8fa;border:1px solid #d1d9e0;border-radius:4px;padding:0 .35rem}
.word,.code{white-space:nowrap}
.again{margin-top:.75rem;color:#59636e;font-size:.875rem}
.again p{margin:0}.again ul{margin:.25rem 0;padding-left:1.25rem;line-height:1.7}.again code{color:#1f2328}
.verdict{border-left:6px solid #59636e;background:#f6f8fa;padding:.75rem 1rem;font-size:1.05rem;overflow-wrap:anywhere}
.verdict.good{border-color:#1a7f37;background:#e9f7ec}
.verdict.bad{border-color:#cf222e;background:#fdeeee}
.verdict strong{display:block}
.passed{color:#116329;font-weight:600}.failed{color:#a40e26;font-weight:600}
table{border-collapse:collapse;width:100%;font-size:.9375rem;margin:.5rem 0}
caption{text-align:left;font-weight:600;padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem .4rem 0;border-bottom:1px solid #d1d9e0;overflow-wrap:anywhere}
thead th{overflow-wrap:normal;font-size:.8125rem;color:#59636e}
tbody th{font-weight:600}
.small{display:block;color:#59636e;font-size:.8125rem;font-weight:400}
figure{margin:0}
.pair{display:grid;grid-template-columns:minmax(0,1fr);gap:1.25rem;align-items:start}
.plot{display:block;width:100%;max-width:30rem;height:auto}
.plot text{font:12px system-ui,sans-serif;fill:#1f2328}
.plot .tick,.plot .key{fill:#59636e}.plot .middle{text-anchor:middle}.plot .end{text-anchor:end}
.plot .band{fill:#ddf4ff}.plot .zero{stroke:#1f2328}.plot .mean{stroke:#0969da;stroke-width:2}
.plot .floor{stroke:#9a6700;stroke-dasharray:4 3}.plot .stem,.plot .grid{stroke:#c8d1da}
.plot .dot{fill:#0969da;stroke:none}.plot .square{fill:#9a6700;stroke:none}
.plot .curve{fill:none;stroke-width:1.5}.plot .curve.dot{stroke:#0969da}.plot .curve.square{stroke:#9a6700}
.scroll{overflow-x:auto;border:1px solid #d1d9e0;border-radius:4px}
.scroll:focus-visible{outline:3px solid #0969da}
.words li{margin:.35rem 0;overflow-wrap:anywhere}
@media (min-width:60rem){.pair{grid-template-columns:minmax(0,26rem) minmax(0,1fr)}}
@media (max-width:40rem){
.code{white-space:normal}
table,tbody,tr,th,td,caption{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tbody tr{border-bottom:1px solid #d1d9e0;padding:.5rem 0}
tbody th,tbody td{border:0;padding:.1rem 0;display:grid;grid-template-columns:7.5rem minmax(0,1fr);gap:.5rem}
tbody th::before,tbody td::before{content:attr(data-label);color:#59636e;font-size:.8125rem;font-weight:400}
.two tbody tr{display:grid;grid-template-columns:minmax(0,11fr) minmax(0,13fr);gap:.75rem}
.two tbody th,.two tbody td{display:block}
.two tbody th::before,.two tbody td::before{content:none}
}
@media print{
html{font-size:9.5pt}main{max-width:none;padding:0}
section,tr,figure,.again{break-inside:avoid}h2{break-after:avoid}
section.long{break-inside:auto}
.scroll{overflow:visible;border:0}.scroll svg{width:100%;height:auto}
.verdict,.band{print-color-adjust:exact}
}
"""
