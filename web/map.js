// The map of the topology: drawn by the server, its counts kept up to date here.

import { $, ask, count, el, plural, say } from "./dom.js";

const KNOWN = new Set(["svg", "g", "rect", "path", "text", "title", "desc"]);
const FLASH_MS = 900;

let shown = null, drawn = null, places = new Map(), flows = [], last = new Map();

export function place() {
  return el("div", { class: "panel map", id: "map", role: "region", "aria-label": "Map of the topology", tabindex: "0" });
}

// Nothing but shapes and text comes into the page, whatever the picture holds.
function cleaned(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg") return null;
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (!KNOWN.has(node.localName)) node.remove();
    for (const { name } of [...node.attributes]) if (/^on|href|style/i.test(name)) node.removeAttribute(name);
  }
  return document.importNode(root, true);
}

export async function draw(state) {
  if (state.map === shown) return;
  shown = state.map;
  const response = await fetch("/api/map", { credentials: "same-origin" });
  const picture = response.ok ? cleaned(await response.text()) : null;
  if (!picture) { shown = null; return; }
  const [, , wide, high] = picture.getAttribute("viewBox").split(" ").map(Number);
  picture.setAttribute("viewBox", `0 ${state.map_top} ${wide} ${high - state.map_top}`);
  picture.removeAttribute("height");
  picture.setAttribute("width", "100%");
  picture.style.minWidth = `${Math.round(Math.min(wide, 1400) * 0.72)}px`;
  picture.style.maxWidth = `${Math.round(wide * 1.25)}px`;
  const box = $("map"), isFirst = !drawn;
  box.replaceChildren(picture);
  if (isFirst) box.scrollTop = (box.scrollHeight - box.clientHeight) / 2; // Where the waits are.
  find(picture);
  drawn = picture;
}

function find(picture) {
  last.clear();
  places = new Map([...picture.querySelectorAll("g[data-card]")].map((card) => {
    const gauge = card.querySelector(".gauge");
    const wide = gauge ? Number(gauge.previousElementSibling.getAttribute("width")) : 0;
    return [card.dataset.card, { text: card.querySelector(".count"), gauge, wide }];
  }));
  // What is tried again takes the same ways as the rest, and is counted with it: only the ways of levels are lively.
  const lively = [...picture.querySelectorAll("path[data-level]")].filter((path) => path.dataset.level && path.dataset.way !== "retry");
  flows = lively.map((path) => {
    const flow = path.cloneNode();
    flow.removeAttribute("stroke-dasharray");
    flow.removeAttribute("stroke-width");
    flow.setAttribute("class", "flow");
    flow.setAttribute("visibility", "hidden");
    path.after(flow);
    return { flow, source: path.dataset.source, target: path.dataset.target };
  });
}

export function beat(model) {
  if (!drawn || !model.state) return;
  const limits = new Map(model.state.levels.map((level) => [level.queue, level.effective?.max_length]));
  const grown = new Set();
  for (const card of model.state.cards) {
    const spot = places.get(card.card);
    if (!spot?.text) continue;
    const total = card.queues.reduce((sum, queue) => sum + (model.counts.get(queue) ?? 0), 0);
    say(spot.text, card.is_wait ? `${count(total)} waiting` : plural(total, "message"));
    if (last.has(card.card) && last.get(card.card) !== total) flash(spot.text);
    if (last.has(card.card) && last.get(card.card) < total) grown.add(card.card);
    last.set(card.card, total);
    const limit = card.queues.length === 1 ? limits.get(card.queues[0]) : null;
    if (spot.gauge && limit) spot.gauge.setAttribute("width", (Math.min(total / limit, 1) * spot.wide).toFixed(1));
  }
  move(model.state, grown);
}

function flash(text) {
  text.classList.add("moved");
  setTimeout(() => text.classList.remove("moved"), FLASH_MS);
}

// Messages are seen to move only where it is known which way they take.
function move(state, grown) {
  const rates = new Map(state.levels.map((level) => [level.queue, level]));
  const taken = new Map(state.targets.map((target) => [target.queue, target.rate_taken]));
  const cards = new Map(state.cards.map((card) => [card.card, card]));
  const into = new Map();
  for (const { source, target } of flows) into.set(target, (into.get(target) ?? new Set()).add(source));
  for (const { flow, source, target } of flows) {
    const from = cards.get(source), to = cards.get(target);
    let moves = false;
    if (to?.is_wait) moves = into.get(target).size === 1 && to.queues.some((queue) => rates.get(queue)?.rate_in > 0);
    else if (from?.is_wait) moves = from.queues.some((queue) => rates.get(queue)?.rate_out > 0);
    else if (source === "exit" && to) moves = grown.has(target) || to.queues.some((queue) => taken.get(queue) > 0);
    const seen = moves ? "visible" : "hidden";
    if (flow.getAttribute("visibility") !== seen) flow.setAttribute("visibility", seen);
  }
}
