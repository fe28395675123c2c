// A line over time against a limit, small enough for a card; what it shows is also said in words.

import { count, duration, svg } from "./dom.js";

const WIDE = 240, HIGH = 56, TOP = 5;

export function spark() {
  const floor = svg("line", { class: "floor", x1: 0, x2: WIDE, y1: HIGH, y2: HIGH });
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line" });
  const limit = svg("line", { class: "limit", x1: 0, x2: WIDE, visibility: "hidden" });
  const root = svg("svg", { class: "spark", viewBox: `0 0 ${WIDE} ${HIGH + 1}`, preserveAspectRatio: "none", role: "img" }, area, line, limit, floor);
  root.parts = { area, line, limit };
  return root;
}

// points: [[ms, count], …], oldest first; from and to are its ends in time.
export function draw(chart, points, { from, to, limit = null, what = "waiting" }) {
  const most = points.reduce((high, point) => Math.max(high, point[1]), 0);
  // A limit that is far away would press the line to the floor: it is in the figures beside the chart.
  const isNear = limit !== null && most >= limit / 5;
  const top = Math.max(isNear ? Math.max(limit, most) * 1.05 : most * 1.15, 1);
  const x = (ms) => ((ms - from) / Math.max(to - from, 1) * WIDE).toFixed(1);
  const y = (value) => (HIGH - value / top * (HIGH - TOP)).toFixed(1);
  const path = points.map(([ms, value], i) => `${i ? "L" : "M"}${x(ms)} ${y(value)}`).join("");
  const { area, line, limit: dashes } = chart.parts;
  line.setAttribute("d", path);
  area.setAttribute("d", points.length ? `${path}L${x(points.at(-1)[0])} ${HIGH}L${x(points[0][0])} ${HIGH}Z` : "");
  dashes.setAttribute("visibility", isNear ? "visible" : "hidden");
  if (isNear) for (const end of ["y1", "y2"]) dashes.setAttribute(end, y(limit));
  const said = points.length
    ? `${what} over ${duration(to - from)}: ${count(points.at(-1)[1])} in the end, ${count(most)} at most`
    : `${what}: nothing is known yet`;
  chart.setAttribute("aria-label", limit === null ? said : `${said}, limit ${count(limit)}`);
}
