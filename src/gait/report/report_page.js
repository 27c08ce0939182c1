"use strict";

// Tables: a click on a head sorts by that column, a second one the other way round, a third one as it was.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const now = before === null ? "ascending" : before === "ascending" ? "descending" : null;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (now !== null) head.setAttribute("aria-sort", now);
      const sign = now === "descending" ? -1 : 1;
      const sorted = now === null ? original : [...original].sort((a, b) => compare(a, b, column, sign));
      body.append(...sorted);
    });
  });
}

function compare(a, b, column, sign) {
  const x = a.cells[column].dataset.value;
  const y = b.cells[column].dataset.value;
  if (x === undefined && y === undefined) {
    return sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en", { numeric: true });
  }
  // What has no number comes last, whichever way.
  if (x === undefined || y === undefined || x === "" || y === "") return (x ? 0 : 1) - (y ? 0 : 1);
  return sign * (Number(x) - Number(y));
}

// Plots: drawn when they come near the screen, and again when its width or its colours change.
const NARROW = 600;
const plots = JSON.parse(document.getElementById("plots").textContent);
const byName = new Map(plots.map((plot) => ["plot-" + plot.name, plot]));
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)");
const drawn = new Map();

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function inked(thing, ink) {
  return thing && thing.color === "#000000" ? { ...thing, color: ink } : thing;
}

function draw(box) {
  const plot = byName.get(box.id);
  const narrow = box.clientWidth < NARROW;
  const [ink, soft, line, page, band] = ["--ink", "--soft", "--line", "--page", "--band"].map(colour);
  const data = plot.data.map((trace) => {
    // What the reader hid stays hidden, and black is black only on white.
    const copy = { ...trace };
    if (copy.line) copy.line = inked(copy.line, ink);
    if (copy.marker) copy.marker = inked(copy.marker, ink);
    return copy;
  });
  const layout = structuredClone(narrow ? plot.narrow : plot.wide);
  for (const [name, axis] of Object.entries(layout)) {
    if (!/^[xy]axis/.test(name)) continue;
    Object.assign(axis, { gridcolor: line, linecolor: line, zerolinecolor: soft, zerolinewidth: 1 });
  }
  Object.assign(layout, {
    autosize: true,
    uirevision: plot.name,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif', size: narrow ? 12 : 13, color: ink },
    hoverlabel: { bgcolor: page, bordercolor: line, font: { color: ink, size: 12 }, namelength: -1 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
    // A finger on a plot scrolls the page; the buttons zoom.
    dragmode: touch.matches ? false : "zoom",
  });
  const config = {
    responsive: true,
    displaylogo: false,
    // By name: plotly also has one that uploads the chart.
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    plotlyServerURL: "",
    toImageButtonOptions: { format: "svg", filename: plot.name },
  };
  box.querySelector(".waiting")?.remove();
  drawn.set(box, narrow);
  return Plotly.react(box, data, layout, config);
}

const boxes = [...document.querySelectorAll(".plot")];
const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
    }
  },
  { rootMargin: "800px" },
);
boxes.forEach((box) => near.observe(box));

addEventListener("resize", () => {
  for (const [box, narrow] of drawn) {
    if (box.clientWidth < NARROW !== narrow) draw(box);
  }
});
dark.addEventListener("change", () => [...drawn.keys()].forEach(draw));
addEventListener("beforeprint", () => boxes.forEach((box) => drawn.has(box) || draw(box)));
