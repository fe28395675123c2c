// What is parked, why, and the way back.

import { $, ask, bytes, count, el, moment, plural, say } from "./dom.js";

let cards = new Map(), open = null, chosen = new Set(), mayRedrive = false, current = null, typing = 0;

export function build(panel, rights) {
  mayRedrive = rights.may_redrive;
  panel.append(
    el("ul", { class: "queues", id: "parkings" }),
    el("div", { class: "block", id: "parked-list", hidden: true },
      el("div", { class: "heading" }, el("h2", { id: "parked-title", tabindex: "-1" }), el("p", { class: "soft small", id: "parked-cost" })),
      el("p", { class: "note", id: "parked-said", role: "status", hidden: true }),
      el("div", { class: "panel scroll", role: "region", "aria-label": "Kinds of parked messages", tabindex: "0" }, el("table", { id: "kinds" })),
      el("div", { class: "block bar" },
        el("label", { class: "sr", for: "parked-text" }, "Find in what is parked"),
        el("input", { type: "search", id: "parked-text", placeholder: "key, reason, id or body …", on: { input: typed } }),
        el("span", { class: "soft small", id: "parked-found", role: "status" }),
        el("span", { class: "grow" }),
        mayRedrive && el("button", { class: "button", id: "redrive-chosen", disabled: true, on: { click: redriveChosen } }, "Redrive chosen"),
        mayRedrive && el("button", { class: "button", id: "redrive-all", on: { click: redriveAll } }, "Redrive all")),
      el("div", { class: "panel scroll", role: "region", "aria-label": "Parked messages", tabindex: "0" }, el("table", { id: "messages" })),
      el("div", { class: "bar" },
        el("button", { class: "button little", id: "parked-before", on: { click: () => turn(-1) } }, "Earlier"),
        el("button", { class: "button little", id: "parked-after", on: { click: () => turn(1) } }, "Later"),
        el("span", { class: "soft small", id: "parked-page" }))),
  );
}

export function state(model) {
  const names = model.state.parked.map((parked) => parked.queue);
  if (JSON.stringify(names) === JSON.stringify([...cards.keys()])) return;
  cards = new Map(model.state.parked.map((parked) => [parked.queue, card(parked)]));
  $("parkings").replaceChildren(...[...cards.values()].map((parts) => parts.root));
  if (!names.length) $("parkings").replaceChildren(el("li", { class: "soft" }, "The file has no place to park messages."));
}

function card(parked) {
  const big = el("p", { class: "big" }, "?");
  const why = parked.kind === "unrouted" ? "had no way out" : "failed every retry";
  const look = el("button", { class: "button", on: { click: () => show(parked.queue, { fresh: true, focus: true }) } }, "Look", el("span", { class: "sr" }, ` into ${parked.queue}`));
  const root = el("li", { class: "panel parking", "data-queue": parked.queue },
    el("div", {}, big, el("p", { class: "name small" }, parked.queue), el("p", { class: "soft small" }, why)), look);
  return { root, big };
}

export function total(model) {
  return model.state.parked.reduce((sum, parked) => sum + (model.counts.get(parked.queue) ?? 0), 0);
}

export function beat(model) {
  for (const [queue, parts] of cards) say(parts.big, count(model.counts.get(queue) ?? null));
}

async function show(queue, { fresh = false, offset = 0, focus = false, said = null } = {}) {
  if (fresh) chosen.clear();
  if (queue !== open) $("parked-text").value = "";
  open = queue;
  $("parked-list").hidden = false;
  say($("parked-title"), `Parked in ${queue}`);
  if (focus) $("parked-title").focus();
  if (fresh) say($("parked-cost"), "Looking …");
  tellOf(said);
  try {
    const page = await ask("/api/parked", { queue, offset, fresh, text: $("parked-text").value });
    if (page.queue === open) lay(page);
  } catch (error) {
    say($("parked-cost"), "");
    tellOf(error.message, true);
  }
}

function tellOf(text, isBad = false) {
  $("parked-said").hidden = !text;
  $("parked-said").classList.toggle("bad", isBad);
  say($("parked-said"), text ?? "");
}

function lay(page) {
  current = page;
  const part = page.looked_at < page.ready ? `Looked at the first ${count(page.looked_at)} of ${plural(page.ready, "message")}` : `Looked at ${plural(page.looked_at, "message")}`;
  const cost = page.looked_at ? `: held for ${page.held_ms} ms, then put back${page.keeps_place === false ? ", behind the others" : page.keeps_place ? "" : ", perhaps behind the others"}.` : ".";
  const worn = page.is_worn ? " One was given back so often that no more were taken." : "";
  say($("parked-cost"), `${part}${cost}${worn}`);
  $("kinds").replaceChildren(...kinds(page));
  $("messages").replaceChildren(...messages(page));
  say($("parked-found"), $("parked-text").value ? plural(page.found, "match").replace("matchs", "matches") : "");
  const last = Math.min(page.offset + page.page, page.found);
  say($("parked-page"), page.found ? `${count(page.offset + 1)} to ${count(last)} of ${count(page.found)}` : "");
  $("parked-before").disabled = page.offset === 0;
  $("parked-after").disabled = last >= page.found;
  choose();
}

const heads = (...words) => el("thead", {}, el("tr", {}, words.map(([word, kind]) => el("th", { scope: "col", class: kind }, word))));

function kinds(page) {
  const words = [["messages", "number"], ["key"], ["reason"], ...(mayRedrive ? [[el("span", { class: "sr" }, "redrive")]] : [])];
  const rows = page.kinds.map((kind) => el("tr", {},
    el("td", { class: "number" }, count(kind.count)), el("td", {}, el("span", { class: "name" }, kind.key)), el("td", {}, kind.reason ?? "not said"),
    mayRedrive && el("td", { class: "number" }, el("button", { class: "button little", on: { click: () => redriveKind(kind) } }, "Redrive", el("span", { class: "sr" }, ` ${plural(kind.count, "message")} with key ${kind.key}`)))));
  const more = page.more_kinds ? [el("tr", {}, el("td", { colspan: 4, class: "soft" }, `and ${plural(page.more_kinds, "other kind")}`))] : [];
  return [el("caption", { class: "sr" }, "Kinds"), heads(...words), el("tbody", {}, rows.length ? rows : el("tr", {}, el("td", { colspan: 4, class: "soft" }, "Nothing is parked.")), more)];
}

function messages(page) {
  const words = [...(mayRedrive ? [[el("span", { class: "sr" }, "choose")]] : []), ["message id"], ["key"], ["reason"], ["parked at, UTC"], ["attempts", "number"], ["body"]];
  return [el("caption", { class: "sr" }, "Messages"), heads(...words), el("tbody", {}, page.messages.map(message))];
}

function message(one) {
  const box = mayRedrive && el("input", { type: "checkbox", "aria-label": `choose ${one.id ?? "a message without id"}`, disabled: one.id === null, on: { change: (event) => pick(one.id, event.target.checked) } });
  if (box) box.checked = chosen.has(one.id);
  const body = one.body === null ? el("span", { class: "soft" }, `${bytes(one.size)}, not text`)
    : el("details", {}, el("summary", {}, bytes(one.size)), el("pre", { class: "body" }, one.body));
  return el("tr", {}, box && el("td", {}, box),
    el("td", {}, el("span", { class: "name" }, one.id ?? "none")), el("td", {}, el("span", { class: "name" }, one.key)), el("td", { class: "wide" }, one.reason ?? "not said"),
    el("td", { class: "number" }, moment(one.since)), el("td", { class: "number" }, count(one.attempt)), el("td", { class: "wide" }, body));
}

function pick(id, isChosen) {
  if (isChosen) chosen.add(id); else chosen.delete(id);
  choose();
}

function choose() {
  if (!mayRedrive) return;
  $("redrive-chosen").disabled = !chosen.size;
  say($("redrive-chosen"), chosen.size ? `Redrive ${count(chosen.size)} chosen` : "Redrive chosen");
  $("redrive-all").disabled = !current?.ready;
}

function typed() {
  clearTimeout(typing);
  typing = setTimeout(() => show(open), 200);
}

const turn = (step) => show(open, { offset: Math.max(0, current.offset + step * current.page) });

const redriveChosen = () => redrive({ ids: [...chosen] }, `${plural(chosen.size, "message")} of ${open}`);
const redriveAll = () => redrive({ all: true }, `all messages of ${open}, ${count(current.ready)} when it was looked at`);
const redriveKind = (kind) => redrive({ kind: { key: kind.key, reason: kind.reason } }, `${plural(kind.count, "message")} of ${open} with key ${kind.key}`);

async function redrive(what, words) {
  if (!await confirmed(words)) return;
  const queue = open;
  for (const button of $("parked").querySelectorAll("button")) button.disabled = true;
  tellOf("Moving …");
  let said = null, isBad = false;
  try {
    said = (await ask("/api/redrive", { queue, ...what })).text;
  } catch (error) {
    [said, isBad] = [error.message, true];
  }
  for (const button of $("parked").querySelectorAll("button")) button.disabled = false;
  await show(queue, { fresh: true, said });
  tellOf(said, isBad);
}

function confirmed(words) {
  const dialog = $("ask");
  say($("ask-title"), "Redrive?");
  say($("ask-text"), `Each goes back to where it belongs, and is taken out of the parking queue once the broker has confirmed it: ${words}.`);
  return new Promise((resolve) => {
    $("ask-yes").onclick = () => dialog.close("yes");
    $("ask-no").onclick = () => dialog.close("no");
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
    dialog.returnValue = "no";
    dialog.showModal();
    $("ask-no").focus();
  });
}
