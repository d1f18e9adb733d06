// Comforts for pages that work without them: copying, asking first, live progress, and one click at a time.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const label = button.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = button.dataset.copied || "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

// A form with data-confirm asks in a dialog before it is sent; data-confirm-label names what it does.
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.confirmed) return;
    event.preventDefault();
    const submitter = event.submitter;
    const dialog = document.createElement("dialog");
    const text = document.createElement("p");
    const actions = document.createElement("div");
    const yes = document.createElement("button");
    const no = document.createElement("button");
    text.id = "dialog-text";
    text.textContent = form.dataset.confirm;
    dialog.setAttribute("aria-labelledby", text.id);
    actions.className = "actions";
    yes.textContent = form.dataset.confirmLabel || (submitter ? submitter.textContent : "Yes");
    yes.className = "primary";
    no.textContent = "Back";
    yes.addEventListener("click", () => {
      form.dataset.confirmed = "yes";
      dialog.close();
      form.requestSubmit(submitter || undefined);
    });
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    actions.append(yes, no);
    dialog.append(text, actions);
    document.body.append(dialog);
    dialog.showModal();
  });
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

// On a phone the navigation is one line: let the page that is open be in sight.
document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
