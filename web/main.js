// The page: lets people in, listens to the server, and hands on what it says to the view that is shown.

import { $, ask, clock, count, duration, say } from "./dom.js";
import * as flow from "./flow.js";
import { queuesOf } from "./levels.js";
import * as parked from "./parked.js";
import * as findings from "./findings.js";
import * as whatIf from "./what-if.js";

const VIEWS = { flow, parked, findings, "what-if": whatIf };
const REMEMBERED_MS = 660000, SILENT_MS = 12000, AGAIN_MS = 1500;
const model = { state: null, counted: [], counts: new Map(), history: new Map(), at: 0, seen: null, away: null };
let source = null, heard = Date.now(), lost = null;

async function start() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    history.replaceState(null, "", location.pathname);
    await ask("/api/session", { token: given }).catch(() => null);
  }
  const session = await ask("/api/session").catch(() => null);
  if (!session) { notice(); setTimeout(start, AGAIN_MS); return; }
  $("door").hidden = session.in;
  $("app").hidden = !session.in;
  if (!session.in) { $("token").focus(); return; }
  for (const [id, view] of Object.entries(VIEWS)) view.build($(id), session);
  listen();
  setInterval(notice, 1000);
}

$("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await ask("/api/session", { token: $("token").value.trim() });
    location.reload();
  } catch (error) {
    say($("login-error"), error.message);
  }
});

function listen() {
  source?.close();
  source = new EventSource("/api/events");
  source.addEventListener("state", (event) => news(JSON.parse(event.data)));
  source.addEventListener("beat", (event) => beat(JSON.parse(event.data)));
  source.addEventListener("open", remember);
  source.addEventListener("error", () => {
    lost ??= Date.now();
    notice();
    if (source.readyState === EventSource.CLOSED) setTimeout(again, AGAIN_MS);
  });
}

// A server that was started anew may want the token again.
async function again() {
  const session = await ask("/api/session").catch(() => null);
  if (session && !session.in) location.reload(); else listen();
}

// What waited before the page was opened.
async function remember() {
  const before = await ask("/api/history").catch(() => ({}));
  for (const [queue, points] of Object.entries(before)) {
    const last = points.length ? points.at(-1)[0] : 0;
    model.history.set(queue, [...points, ...(model.history.get(queue) ?? []).filter(([at]) => at > last)]);
  }
  render();
}

function news({ counted, state }) {
  model.counted = counted;
  if (!state) return;
  model.state = state;
  document.title = `${state.healthy ? "" : "(!) "}${state.title} · delayctl`;
  say($("title"), state.title);
  say($("where"), `virtual host ${state.vhost}, RabbitMQ ${state.rabbitmq_version}`);
  for (const view of Object.values(VIEWS)) view.state?.(model)?.then?.(render);
  const { all, isBad } = findings.grave(state);
  bubble("findings-count", all, isBad);
}

function beat(beat) {
  heard = Date.now();
  lost = null;
  Object.assign(model, { at: beat.at, seen: beat.seen, away: beat.away });
  model.counts = new Map(model.counted.map((queue, i) => [queue, beat.counts[i]]));
  if (!beat.away) for (const queue of (model.state?.levels ?? []).flatMap(queuesOf)) note(queue, beat.at);
  notice();
  render();
}

function note(queue, at) {
  const waiting = model.counts.get(queue), points = model.history.get(queue) ?? [];
  if (waiting === null || waiting === undefined) return;
  points.push([at, waiting]);
  while (points[0][0] < at - REMEMBERED_MS) points.shift();
  model.history.set(queue, points);
}

function render() {
  if (!model.state) return;
  for (const [id, view] of Object.entries(VIEWS)) if (!$(id).hidden) view.beat?.(model);
  const all = parked.total(model);
  bubble("parked-count", all, all > 0);
}

function bubble(id, value, isBad) {
  $(id).hidden = !value;
  $(id).classList.toggle("bad", isBad);
  say($(id), count(value));
}

// Whether what is shown can be relied on.
function notice() {
  const silent = lost ?? (Date.now() - heard > SILENT_MS ? heard : null);
  const banner = $("banner");
  let text = "", kind = "";
  if (silent) [text, kind] = [`delayctl serve has not answered since ${clock(silent)}. What is shown is older than that; the page goes on by itself.`, "server"];
  else if (model.away) [text, kind] = [`The broker can't be looked at since ${clock(model.away.since)}: ${model.away.what}.${model.seen ? ` What is shown is of ${clock(model.seen)}.` : ""} The page goes on by itself when it is back.${model.away.fix ? ` What may help: ${model.away.fix}.` : ""}`, "broker"];
  if (banner.hidden !== !text) banner.hidden = !text;
  banner.dataset.kind = kind;
  say(banner, text);
  const pill = $("health");
  const { state } = model;
  const unhealthy = state?.reasons.filter((reason) => reason.severity === "unhealthy").length ?? 0;
  const warnings = state?.reasons.filter((reason) => reason.severity === "warning").length ?? 0;
  if (text) { pill.dataset.state = "bad"; say(pill, kind === "broker" ? "broker away" : "no connection"); }
  else if (!state) { pill.dataset.state = "unknown"; say(pill, "not known yet"); }
  else if (unhealthy) { pill.dataset.state = "bad"; say(pill, `not healthy: ${unhealthy} reason${unhealthy === 1 ? "" : "s"}`); }
  else if (warnings) { pill.dataset.state = "warning"; say(pill, `healthy, ${warnings} warning${warnings === 1 ? "" : "s"}`); }
  else { pill.dataset.state = "good"; say(pill, "healthy"); }
  say($("seen"), model.seen ? (text ? `last seen ${duration(Math.max(Date.now() - model.seen, 0))} ago` : `live, ${clock(model.at)}`) : "");
}

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(tab) {
  for (const one of tabs) {
    const is = one === tab;
    one.setAttribute("aria-selected", String(is));
    one.tabIndex = is ? 0 : -1;
    $(one.getAttribute("aria-controls")).hidden = !is;
  }
  render();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.focus();
    select(next);
  });
}

start();
