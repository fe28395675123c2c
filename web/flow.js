// The first view: the map, a card for every wait, and where messages arrive.

import { $, count, duration, el, hue, rate, say, share } from "./dom.js";
import { draw, spark } from "./chart.js";
import { historyOf, waitingIn } from "./levels.js";
import * as map from "./map.js";

const WINDOW_MS = 600000;
let cards = new Map(), rows = new Map(), shape = "";

export function build(panel) {
  panel.append(
    map.place(),
    el("div", { class: "block" },
      el("div", { class: "heading" }, el("h2", {}, "Levels"), el("p", { class: "soft small" }, "Backlog of the last ten minutes; rates are of the last minute.")),
      el("ul", { class: "levels", id: "levels" })),
    el("div", { class: "block", id: "targets-block", hidden: true },
      el("div", { class: "heading" }, el("h2", {}, "Arrives at")),
      el("div", { class: "panel scroll", role: "region", "aria-label": "Queues behind the delays", tabindex: "0" },
        el("table", {},
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "queue"),
            ...["messages", "consumers", "taken/s"].map((word) => el("th", { scope: "col", class: "number" }, word)))),
          el("tbody", { id: "targets" })))),
  );
}

export function state(model) {
  const { levels, targets } = model.state;
  const { hues } = model.state;
  const wanted = JSON.stringify([hues, levels.map((level) => [level.level, level.queue]), targets.map((target) => target.queue)]);
  if (wanted !== shape) {
    shape = wanted;
    cards = new Map(levels.map((level, i) => [level.queue, card(level, hue(hues, level.level, i))]));
    $("levels").replaceChildren(...[...cards.values()].map((parts) => parts.root));
    rows = new Map(targets.map((target) => [target.queue, row(target)]));
    $("targets").replaceChildren(...[...rows.values()].map((parts) => parts.root));
    $("targets-block").hidden = !targets.length;
  }
  for (const level of levels) tell(cards.get(level.queue), level);
  for (const target of targets) {
    const parts = rows.get(target.queue);
    say(parts.consumers, count(target.consumers));
    say(parts.taken, rate(target.rate_taken));
  }
  return map.draw(model.state);
}

function card(level, colour) {
  const fact = (name) => {
    const value = el("dd", {}, "?");
    return [el("div", {}, el("dt", {}, name), value), value];
  };
  const [into, intoValue] = fact("in/s"), [out, outValue] = fact("out/s");
  const [oldest, oldestValue] = fact("oldest"), [early, earlyValue] = fact("early");
  const big = el("span", { class: "big" }, "?"), of = el("span", { class: "soft small" });
  const fullness = el("i"), bar = el("div", { class: "gauge-bar", "aria-hidden": "true" }, fullness), chart = spark();
  const root = el("li", { class: `panel level ${colour}`, "data-queue": level.queue },
    el("div", { class: "title" }, el("h3", { class: "badge" }, level.level), el("span", { class: "name", title: level.queue }, level.queue)),
    el("p", { class: "figure" }, big, of), bar, chart, el("dl", { class: "facts" }, into, out, oldest, early));
  return { root, big, of, bar, fullness, chart, intoValue, outValue, oldestValue, earlyValue };
}

function tell(parts, level) {
  say(parts.intoValue, rate(level.rate_in));
  say(parts.outValue, rate(level.rate_out));
  say(parts.oldestValue, level.oldest ? about(level.oldest) : "–");
  say(parts.earlyValue, level.early.count !== null ? count(level.early.count) : level.early.at_least === null ? "?" : `${count(level.early.at_least)}+`);
}

function about(age) {
  if (age.at_most_ms === null) return `over ${duration(age.at_least_ms)}`;
  const close = age.at_most_ms - age.at_least_ms <= 40000;
  return close ? `~${duration(Math.max(age.at_most_ms, 1000))}` : `≤ ${duration(age.at_most_ms)}`;
}

function row(target) {
  const cell = () => el("td", { class: "number" }, "?");
  const [messages, consumers, taken] = [cell(), cell(), cell()];
  const root = el("tr", { "data-queue": target.queue }, el("td", {}, el("span", { class: "name" }, target.queue)), messages, consumers, taken);
  return { root, messages, consumers, taken };
}

export function beat(model) {
  const now = model.at;
  for (const level of model.state.levels) {
    const parts = cards.get(level.queue), waiting = waitingIn(level, model.counts);
    if (!parts) continue;
    const limit = (level.effective ?? level.wanted)?.max_length ?? null;
    const full = limit && waiting !== null ? waiting / limit : null;
    say(parts.big, level.exists ? count(waiting) : "missing");
    say(parts.of, !level.exists ? "on the broker" : limit ? `waiting, ${share(full)} of ${count(limit)}` : "waiting, no limit");
    parts.fullness.style.width = `${Math.min(full ?? 0, 1) * 100}%`;
    parts.bar.classList.toggle("high", (full ?? 0) >= 0.8);
    const points = historyOf(level, model.history).filter(([ms]) => ms >= now - WINDOW_MS);
    draw(parts.chart, points, { from: now - WINDOW_MS, to: now, limit });
  }
  for (const [queue, parts] of rows) say(parts.messages, count(model.counts.get(queue) ?? null));
  map.beat(model);
}
