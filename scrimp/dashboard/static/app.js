// Pages with data-live reload their fragments when the study changes; the table is filtered, sorted and paged in place.
"use strict";

async function refresh(part) {
  try {
    const answer = await fetch(part.dataset.fragment);
    if (answer.status !== 200) return;
    const text = await answer.text();
    const opened = [...part.querySelectorAll("details[open][id]")].map((fold) => fold.id);
    part.innerHTML = text;
    for (const fold of opened) document.getElementById(fold)?.setAttribute("open", "");
    marks.restore();
  } catch (error) {
    // retried at the next change
  }
}

function follow(address) {
  const stream = new EventSource(address);
  let first = true;
  let waiting = null;
  let pause = 1500;
  stream.addEventListener("change", () => {
    if (first) {
      first = false;
      return;
    }
    if (waiting) return;
    waiting = setTimeout(async () => {
      const began = Date.now();
      const parts = document.querySelectorAll("[data-fragment]");
      if (!parts.length && !document.querySelector("[data-figure]")) location.reload();
      for (const part of parts) await refresh(part);
      for (const figure of drawAgain()) await draw(figure);
      pause = Math.max(1500, 3 * (Date.now() - began)); // keeps a long study from loading the server
      waiting = null;
    }, pause);
  });
  addEventListener("pagehide", () => stream.close());
}

// Show the table of an address of this page without reloading the rest.
function turnTo(address) {
  const part = document.getElementById("table");
  const target = new URL(part.dataset.fragment, location.href);
  target.search = address.search;
  part.dataset.fragment = target.pathname + target.search;
  history.replaceState(null, "", address);
  for (const input of document.querySelectorAll("#filter input[name=sort], #filter input[name=order]")) {
    input.value = address.searchParams.get(input.name) || input.value;
  }
  return refresh(part);
}

function filtered(form) {
  const address = new URL(form.action, location.href);
  address.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== "")).toString();
  return turnTo(address);
}

const form = document.getElementById("filter");
const table = document.getElementById("table");
if (form && table) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filtered(form);
  });
  form.addEventListener("change", () => filtered(form));
  table.addEventListener("click", (event) => {
    const link = event.target.closest("th a, .pages a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const address = new URL(link.href);
    address.hash = "";
    turnTo(address);
  });
  document.addEventListener("brushed", (event) => {
    form.elements.text.value = event.detail;
    filtered(form);
  });
}

const live = document.querySelector("[data-live]");
if (live) follow(live.dataset.live);

for (const input of document.querySelectorAll("input[data-fills]")) {
  input.addEventListener("change", async () => {
    if (input.files.length) document.getElementById(input.dataset.fills).value = await input.files[0].text();
  });
}
