// Passkeys: a form with data-passkey asks the browser for one and sends what it has signed.
"use strict";

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

function made(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = text(credential.response[name]);
  }
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, response, clientExtensionResults: {} };
}

function readable(options) {
  options.challenge = bytes(options.challenge);
  if (options.user) options.user.id = bytes(options.user.id);
  for (const list of ["excludeCredentials", "allowCredentials"]) {
    for (const one of options[list] || []) one.id = bytes(one.id);
  }
  return options;
}

async function answer(form) {
  const sent = await fetch(form.action + "/options", { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!sent.ok) throw new Error((await sent.text()) || "That did not work.");
  const publicKey = readable(await sent.json());
  const credential = form.dataset.passkey === "create"
    ? await navigator.credentials.create({ publicKey })
    : await navigator.credentials.get({ publicKey });
  return JSON.stringify(made(credential));
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !window.PublicKeyCredential;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector("[data-passkey-problem]");
    const button = form.querySelector("button");
    problem.hidden = true;
    button.setAttribute("aria-busy", "true");
    try {
      form.elements.answer.value = await answer(form);
      form.submit();
    } catch (error) {
      const gaveUp = error.name === "NotAllowedError" || error.name === "AbortError";
      problem.textContent = gaveUp ? "Nothing was chosen in time." : error.message;
      problem.hidden = false;
      button.removeAttribute("aria-busy");
    }
  });
}
