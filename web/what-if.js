// Asks the simulator about this topology.

import { $, ask, bytes, count, duration, el, hue, plural, share } from "./dom.js";
import { draw, spark } from "./chart.js";

const FIELDS = [
  ["rates", "Messages come at", "1000/s", "of each delayed route; or order.created=200/s, …"],
  ["length", "For", "2h", "left open: twice the longest wait"],
  ["bursts", "Bursts", "5000/s@12m+30s", "rate @ when + how long"],
  ["consume", "Consumers take", "800/s", "left open: they keep up; queue=800/s for one"],
  ["consumer_away", "Consumers are away", "30m+5m", "when + how long"],
  ["away", "The broker is away", "10m+5m", "publishers hold messages back meanwhile"],
  ["message_size", "Size of a body", "2kB", "for max_bytes, and what bodies take"],
  ["delay", "Any delay", "1h30m", "for routes with delay: any"],
];
let latest = null;

export function build(panel) {
  panel.append(
    el("form", { class: "panel form", id: "question", on: { submit: answer } },
      FIELDS.map(([name, label, example, hint]) => el("div", {},
        el("label", { for: `ask-${name}` }, label),
        el("input", { type: "text", id: `ask-${name}`, name, placeholder: `such as ${example}`, autocomplete: "off", spellcheck: "false", "aria-describedby": `hint-${name}` }),
        el("span", { class: "hint", id: `hint-${name}` }, hint))),
      el("div", { class: "buttons" },
        el("button", { type: "submit", class: "primary", id: "ask-simulator" }, "Foretell"),
        el("button", { type: "button", id: "as-now", on: { click: asNow } }, "Take the present rates"))),
    el("div", { id: "answer", "aria-live": "polite" }),
  );
}

export function state(model) { latest = model.state; }

// The rates that come in now, by level: keys are not counted by the broker.
function asNow() {
  const into = (latest?.levels ?? []).map((level) => level.rate_in ?? 0);
  const each = Math.max(...into, 0);
  $("ask-rates").value = each > 0 ? `${Math.max(1, Math.round(each * 60))}/m` : "";
  $("ask-rates").focus();
}

async function answer(event) {
  event.preventDefault();
  const question = Object.fromEntries(FIELDS.map(([name]) => [name, $(`ask-${name}`).value]));
  $("ask-simulator").disabled = true;
  try {
    $("answer").replaceChildren(...told(await ask("/api/what-if", question)));
  } catch (error) {
    $("answer").replaceChildren(el("p", { class: "note bad" }, error.message));
  }
  $("ask-simulator").disabled = false;
}

function told(result) {
  const sum = `${plural(result.published, "message")} within ${duration(result.traffic_ends_ms)}, all over after ${duration(result.end_ms)}; most wait after ${duration(result.most_waiting.at_ms)}: ${count(result.most_waiting.count)}, about ${bytes(result.memory.most_bytes)} of memory.`;
  return [
    el("div", { class: "heading" }, el("h2", {}, el("span", { class: "pill", "data-state": result.fits ? "good" : "bad" }, result.fits ? "it fits" : "it does not fit")), el("p", { class: "soft" }, sum)),
    result.findings.length ? el("ul", { class: "panel" }, result.findings.map((finding) => el("li", { class: "finding" },
      el("div", { class: "head" }, el("span", { class: `chip ${finding.trouble ? "error" : "info"}` }, finding.trouble ? "trouble" : "note"), el("span", { class: "what" }, finding.what)),
      finding.fix && el("p", { class: "more" }, `fix: ${finding.fix}`)))) : null,
    el("ul", { class: "levels block" }, [...result.levels, ...result.queues].map((queue, i) => card(queue, i, result))),
  ].filter(Boolean);
}

function card(queue, i, result) {
  const chart = spark(), interval = queue.backlog.interval_ms;
  const points = queue.backlog.most.map((most, k) => [k * interval, most]);
  draw(chart, points, { from: 0, to: Math.max(result.end_ms, 1), limit: queue.max_length, what: "foretold to wait" });
  const facts = queue.level
    ? [["arrived", count(queue.arrived)], ["early", count(queue.early.count)], ["refused", count(queue.refused.count)], ["needs", count(queue.needed_max_length)]]
    : [["arrived", count(queue.arrived)], ["taken", count(queue.consumed)], ["late", count(queue.late.count)], ["longest", duration(queue.longest_wait_ms)]];
  const of = queue.max_length ? `at most, ${share(queue.most_waiting.count / queue.max_length)} of ${count(queue.max_length)}` : "at most";
  const colour = queue.level ? hue(latest?.hues ?? [], queue.level, i) : "";
  return el("li", { class: `panel level ${colour}` },
    el("div", { class: "title" }, queue.level && el("h3", { class: "badge" }, queue.level), el("span", { class: "name", title: queue.queue }, queue.queue)),
    el("p", { class: "figure" }, el("span", { class: "big" }, count(queue.most_waiting.count)), el("span", { class: "soft small" }, of)),
    chart, el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
}
