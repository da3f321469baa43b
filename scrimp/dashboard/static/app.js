// Pictures are loaded when they come into view; a page that has data-live loads its parts anew when its study changes.
"use strict";

const visible = new Set();
const current = new WeakSet(); // figures that show the newest state

async function draw(figure) {
  current.add(figure);
  const caption = figure.querySelector("figcaption");
  const place = figure.querySelector(".plot");
  try {
    const panels = figure.clientWidth < 560 ? "&columns=1" : ""; // of a figure that has several
    const answer = await fetch(figure.dataset.figure + panels);
    const body = await answer.json();
    if (!body.layout) {
      caption.textContent = body.message || "it cannot be drawn";
      if (answer.status === 202) setTimeout(() => draw(figure), 1500);
      return;
    }
    const words = body.layout.meta.alternative;
    body.layout.autosize = true;
    delete body.layout.width;
    if (figure.clientWidth < 560) {
      body.layout.title.font = { size: 13 };
      if (body.layout.legend.orientation === "v") body.layout.legend = { orientation: "h", y: -0.15, yanchor: "top" };
    }
    place.style.height = (body.layout.height || 430) + "px";
    await Plotly.react(place, body.data, body.layout, { responsive: true, displaylogo: false });
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", decode(words));
    caption.textContent = decode(words);
    figure.dataset.drawn = "yes";
  } catch (error) {
    current.delete(figure);
    caption.textContent = "the server does not answer";
  }
}

// Plotly's texts write < as &lt;, a caption does not.
function decode(words) {
  return words.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

async function refresh(part) {
  try {
    const answer = await fetch(part.dataset.fragment);
    if (answer.status === 200) part.innerHTML = await answer.text();
  } catch (error) {
    // the next change tries again
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
      for (const figure of document.querySelectorAll("[data-figure]")) current.delete(figure);
      for (const figure of visible) await draw(figure);
      pause = Math.max(1500, 3 * (Date.now() - began)); // a long study must not keep its server busy
      waiting = null;
    }, pause);
  });
  addEventListener("pagehide", () => stream.close());
}

function switchAxis(button) {
  const figure = document.getElementById("figure-history");
  const address = new URL(figure.dataset.figure, location.href);
  address.searchParams.set("over", button.dataset.axis);
  figure.dataset.figure = address.pathname + address.search;
  for (const other of document.querySelectorAll("[data-axis]")) other.setAttribute("aria-pressed", String(other === button));
  draw(figure);
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) {
      visible.delete(entry.target);
    } else {
      visible.add(entry.target);
      if (!current.has(entry.target)) draw(entry.target);
    }
  }
}, { rootMargin: "200px" });

for (const figure of document.querySelectorAll("[data-figure]")) watcher.observe(figure);
for (const button of document.querySelectorAll("[data-axis]")) button.addEventListener("click", () => switchAxis(button));
const live = document.querySelector("[data-live]");
if (live) follow(live.dataset.live);
