// Comforts of the docs: copying, one language everywhere, search while one types, the place on the page, and trying calls.
"use strict";

// ── copying ──
for (const box of navigator.clipboard ? document.querySelectorAll(".code") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(box.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  box.append(button);
}

// ── one language everywhere: the choice is kept for the next page; where nothing may be kept, it holds for this one ──
const LANGUAGE = "docs-language";
function choose(language) {
  for (const input of document.querySelectorAll(".samples > input")) {
    if (input.value === language) input.checked = true;
  }
}
try { choose(localStorage.getItem(LANGUAGE)); } catch { /* Nothing may be kept here. */ }
for (const input of document.querySelectorAll(".samples > input")) {
  input.addEventListener("change", () => {
    choose(input.value);
    try { localStorage.setItem(LANGUAGE, input.value); } catch { /* Nothing may be kept here. */ }
  });
}

// ── search: the same index and the same rule as the page that answers without a script ──
const search = document.querySelector(".search");
const found = search.querySelector(".found");
const field = search.querySelector("input");
const FOUND_MAX = 8;
let index = null;
const wordsOf = (text) => (text.toLowerCase().match(/[a-z0-9]{2,}/g) || []).map((word) => word.slice(0, 40));
const has = (words, word) => words.includes(" " + word);

function matching(query) {
  const wanted = wordsOf(query);
  if (!wanted.length) return [];
  return index.map(([path, title, kind, words]) => {
    const ofTitle = wordsOf(title), head = ofTitle.map((word) => " " + word).join("");
    if (!wanted.every((word) => has(words, word) || has(head, word))) return null;
    const whole = ofTitle.join(" ") === wanted.join(" ");
    return { path, title, kind, score: (whole ? 100 : 0) + wanted.filter((word) => has(head, word)).length };
  }).filter(Boolean).sort((one, other) => other.score - one.score);
}

async function look() {
  const home = search.getAttribute("action");
  try {
    index ||= await (await fetch(home + ".json")).json();
  } catch { return; }
  const results = matching(field.value);
  found.replaceChildren(...results.slice(0, FOUND_MAX).map((one) => {
    const link = document.createElement("a"), kind = document.createElement("span");
    link.href = home.replace(/\/docs\/search$/, "") + one.path;
    link.textContent = one.title;
    kind.className = "tag";
    kind.textContent = one.kind;
    link.append(kind);
    return link;
  }));
  if (!results.length) {
    const nothing = document.createElement("p");
    nothing.textContent = "Nothing was found.";
    found.append(nothing);
  }
  found.hidden = !field.value.trim();
  search.querySelector("[role=status]").textContent = field.value.trim() ? `${results.length} found` : "";
}
field.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
  const links = [...found.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") { found.hidden = true; field.focus(); }
  if (!step || found.hidden || !links.length) return;
  event.preventDefault();
  const next = links.indexOf(document.activeElement) + step;
  (next < 0 ? field : links[Math.min(next, links.length - 1)]).focus();
});
document.addEventListener("click", (event) => { if (!search.contains(event.target)) found.hidden = true; });

// ── the place on the page ──
const places = new Map();
for (const link of document.querySelectorAll(".headings a")) places.set(document.getElementById(link.hash.slice(1)), link);
if (places.size) {
  const mark = () => {
    let here = null;
    for (const heading of places.keys()) if (heading.getBoundingClientRect().top < 130) here = heading;
    for (const [heading, link] of places) {
      if (heading === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  };
  document.addEventListener("scroll", mark, { passive: true });
  mark();
}
document.querySelector(".sidebar [aria-current]")?.scrollIntoView({ block: "nearest" });

// ── trying calls: with a sandbox key, which is kept in its field and nowhere else ──
const keyField = document.querySelector("#try-key");
const keyProblem = document.querySelector("#try-key-problem");
const SHOWN_CHARS_MAX = 100_000;

function keyRefusal(key) {
  if (!key) return "Put a sandbox key here first.";
  if (key.startsWith("vk_live_")) {
    return "This is a live key, and the page does not send it: a call with it spends real money, and a live key " +
      "belongs into no page. Take a sandbox key, which begins with vk_test_.";
  }
  if (!/^vk_test_[0-9A-Za-z]+$/.test(key)) return "This is no sandbox key: those begin with vk_test_.";
  return "";
}

// JSON with line breaks. It is not parsed, so that every digit stays as it was sent.
function indented(text) {
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  return text.replace(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|\s+/g, (part) => {
    if (/^\s/.test(part)) return "";
    if (part === "{" || part === "[") { depth += 1; return part + line(); }
    if (part === "}" || part === "]") { depth -= 1; return line() + part; }
    if (part === ",") return part + line();
    return part === ":" ? ": " : part;
  });
}

function requestOf(form) {
  const headers = { authorization: `Bearer ${keyField.value.trim()}` };
  const query = new URLSearchParams();
  let path = form.getAttribute("action");
  for (const input of form.querySelectorAll("[data-name]")) {
    const { name, place } = input.dataset, value = input.value.trim();
    if (!value && "required" in input.dataset) { input.focus(); throw new Error(`Fill in ${name} first.`); }
    if (!value) continue;
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "header") headers[name] = value;
    else query.append(name, value);
  }
  const body = form.querySelector("[data-body]");
  if (body) headers["content-type"] = "application/json";
  const asked = query.toString();
  return [path + (asked ? `?${asked}` : ""), { method: form.dataset.method, headers, body: body ? body.value : undefined }];
}

function show(form, answer, text, tookMs) {
  const box = form.querySelector(".answer"), status = document.createElement("span");
  const said = [`${tookMs} ms`];
  const id = answer.headers.get("x-request-id");
  if (id) said.push(`X-Request-Id: ${id}`);
  status.className = `status ${answer.ok ? "good" : "bad"}`;
  status.textContent = answer.status;
  box.querySelector(".answer-line").replaceChildren(status, " " + said.join(" · "));
  const isJson = (answer.headers.get("content-type") || "").includes("json");
  const shown = isJson ? indented(text) : text;
  const cut = shown.length > SHOWN_CHARS_MAX ? shown.slice(0, SHOWN_CHARS_MAX) + "\n…" : shown;
  box.querySelector("pre").hidden = !cut;
  box.querySelector("code").textContent = cut;
  box.hidden = false;
}

async function send(form) {
  const problem = form.querySelector(".try-problem");
  problem.textContent = "";
  keyProblem.textContent = keyRefusal(keyField.value.trim());
  keyField.setAttribute("aria-invalid", keyProblem.textContent ? "true" : "false");
  if (keyProblem.textContent) { keyField.focus(); return; }
  try {
    const [path, request] = requestOf(form);
    const began = performance.now();
    const answer = await fetch(path, { ...request, credentials: "omit", cache: "no-store", redirect: "error" });
    const text = await answer.text();
    show(form, answer, text, Math.round(performance.now() - began));
    const trx = answer.ok && /"trx":\s*"([^"]+)"/.exec(text);
    for (const input of trx ? document.querySelectorAll("[data-name=trx]") : []) input.value = trx[1];
  } catch (error) {
    problem.textContent = error instanceof TypeError ? "The service could not be reached." : error.message;
  }
}

if (keyField) {
  document.querySelector(".key-box").hidden = false;
  document.querySelector("#no-script").hidden = true;
}
for (const form of document.querySelectorAll("form.try")) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.hasAttribute("aria-busy")) return;
    button.setAttribute("aria-busy", "true");
    await send(form);
    button.removeAttribute("aria-busy");
  });
}
