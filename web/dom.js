// Small helpers. Text comes to the page by textContent alone: names and bodies are written by anybody.

const SVG = "http://www.w3.org/2000/svg";
const numbers = new Intl.NumberFormat("en");

export const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Sets a text only where it is another one, so that nothing is laid out anew and no selection is lost.
export function say(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export const count = (value) => (value === null || value === undefined ? "?" : numbers.format(value));
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

export function rate(value) {
  if (value === null || value === undefined) return "?";
  if (value >= 100) return numbers.format(Math.round(value));
  return value >= 10 ? value.toFixed(0) : value > 0 ? Math.max(value, 0.1).toFixed(1) : "0";
}

export function share(value) {
  if (value === null || value === undefined) return "";
  const percent = value * 100;
  return percent >= 10 || percent === 0 ? `${Math.round(percent)}%` : percent < 0.1 ? "under 0.1%" : `${percent.toFixed(1)}%`;
}

// 90000 -> "1m30s", as files have it; no more than two units.
export function duration(ms) {
  if (ms === null || ms === undefined) return "?";
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const units = [["d", 86400000], ["h", 3600000], ["m", 60000], ["s", 1000]];
  const parts = [];
  let left = ms;
  for (const [unit, size] of units) {
    const whole = Math.floor(left / size);
    if (whole && parts.length < 2) parts.push(`${whole}${unit}`);
    left -= whole * size;
  }
  return parts.join("") || "0s";
}

export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
export const moment = (ms) => (ms === null || ms === undefined ? "?" : new Date(ms).toISOString().slice(0, 19).replace("T", " "));

export function bytes(size) {
  if (size < 1000) return `${size} B`;
  return size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}

// The colour of a level, as on the map; all steps of the ladder share one.
export function hue(hues, level, otherwise) {
  const place = [hues.indexOf(level), hues.indexOf("any"), otherwise].find((number) => number >= 0);
  return `hue-${(place % 6) + 1}`;
}

// Asks the server; what it refuses is an Error with the words to be shown.
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin" });
  } catch {
    throw new Error("delayctl serve does not answer");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error([answer.error ?? `error ${response.status}`, answer.fix].filter(Boolean).join("\nfix: "));
  return answer;
}
