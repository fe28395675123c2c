// What is wrong and what now: drift, the doctor's findings, and what lint says of the file.

import { $, el, plural } from "./dom.js";

let shown = "";

export function build(panel) {
  panel.append(
    block("drift", "Drift", "How the broker differs from the file; plan shows the same."),
    block("doctor", "Health", "What delayctl doctor finds."),
    block("lint", "Lint", "What delayctl validate says of the file by itself."),
  );
}

const block = (id, title, words) => el("div", { class: "block" },
  el("div", { class: "heading" }, el("h2", {}, title), el("p", { class: "soft small" }, words)),
  el("ul", { class: "panel", id: `list-${id}` }));

export function grave(state) {
  const errors = [...state.findings, ...state.lint].filter((finding) => finding.severity === "error").length;
  return { all: state.drift.length + state.findings.length + state.lint.length, isBad: errors > 0 || state.drift.length > 0 };
}

export function state(model) {
  const { drift, findings, lint, title } = model.state;
  const wanted = JSON.stringify([drift, findings, lint]);
  if (wanted === shown) return;
  shown = wanted;
  fill("drift", drift.map(drifted), `The broker matches ${title}.`);
  fill("doctor", findings.map(found), "Nothing is wrong.");
  fill("lint", lint.map(linted), "Nothing to say.");
}

function fill(id, items, otherwise) {
  $(`list-${id}`).replaceChildren(...(items.length ? items : [el("li", { class: "fine soft" }, otherwise)]));
}

const drifted = (item) => el("li", { class: "finding" },
  el("div", { class: "head" }, el("span", { class: "symbol" }, item.symbol), el("span", { class: "what name" }, item.what)),
  item.details.map((line) => el("p", { class: "more name" }, line)),
  item.fix && el("p", { class: "more" }, `fix: ${item.fix}`));

const head = (item) => el("div", { class: "head" },
  el("span", { class: `chip ${item.severity}` }, item.severity), el("span", { class: "soft small" }, item.code), el("span", { class: "what" }, item.message));

const found = (item) => el("li", { class: "finding" }, head(item),
  item.seen.map((line) => el("p", { class: "more" }, line)),
  el("p", { class: "more" }, item.reason), el("p", { class: "more" }, `fix: ${item.fix}`),
  item.commands.length ? el("pre", {}, item.commands.join("\n")) : null);

const linted = (item) => el("li", { class: "finding" }, head(item),
  el("p", { class: "more" }, `line ${item.line}, ${item.at}`),
  el("p", { class: "more" }, item.reason), el("p", { class: "more" }, `fix: ${item.fix}`));

export const counted = (all) => plural(all, "finding");
