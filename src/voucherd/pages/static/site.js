// Comforts for pages that work without them: copying, printing, live progress, and one click at a time.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  const words = button.querySelector("span") || button;
  const label = words.textContent;
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("copied");
    words.textContent = button.dataset.copied || "Copied";
    setTimeout(() => { words.textContent = label; button.classList.remove("copied"); }, 1500);
  });
}

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

// A form with data-busy can be sent once; its button says that it is at work.
for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    if (event.submitter) event.submitter.setAttribute("aria-busy", "true");
  });
}
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
});

// A field with data-submit sends its form when it changes.
for (const field of document.querySelectorAll("[data-submit]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}

// An element with data-live follows server-sent events: each event's data is JSON whose names are put into
// the elements with that data-fact, and an event named "reload" loads the page again.
for (const box of document.querySelectorAll("[data-live]")) {
  const source = new EventSource(box.dataset.live);
  source.addEventListener("message", (event) => {
    for (const [name, value] of Object.entries(JSON.parse(event.data))) {
      for (const place of box.querySelectorAll(`[data-fact="${CSS.escape(name)}"]`)) {
        if (place instanceof HTMLProgressElement) place.value = value; else place.textContent = value;
      }
    }
  });
  source.addEventListener("reload", () => { source.close(); location.reload(); });
}

// The server writes times in the browser's own zone for whoever has chosen none.
if (document.body.dataset.zone !== undefined) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; secure" : "";
  if (zone) document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
}

// An open menu closes when the person looks elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) { menu.open = false; menu.querySelector("summary").focus(); }
});

// The search field of the console: "/" or Ctrl-K leads there from anywhere but another field.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector(".search input");
  if (!field) return;
  const typing = event.target.closest?.("input, select, textarea, [contenteditable]");
  const slash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!slash && !(event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) return;
  event.preventDefault();
  field.focus();
  field.select();
});
