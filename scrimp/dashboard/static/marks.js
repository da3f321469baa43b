// The selected rows of a table, kept while rows reload and across its pages.
"use strict";

const marks = {
  study: document.querySelector("main").dataset.study, // selected trials are stored, studies only while the page is open
  open: new Map(),

  read() {
    if (this.study === undefined) return this.open;
    try {
      return new Map(JSON.parse(sessionStorage.getItem("marked " + this.study) || "[]"));
    } catch (error) {
      return this.open;
    }
  },

  write(marked) {
    this.open = marked;
    try {
      if (this.study !== undefined) sessionStorage.setItem("marked " + this.study, JSON.stringify([...marked]));
    } catch (error) {
      // no session storage: the selection lasts as long as the page
    }
  },

  key: (box) => box.name + "=" + box.value,

  changed(box) {
    const marked = this.read();
    if (box.checked) marked.set(this.key(box), [box.name, box.value]);
    else marked.delete(this.key(box));
    this.write(marked);
    this.count();
  },

  restore() {
    const marked = this.read();
    for (const box of document.querySelectorAll("[data-mark]")) box.checked = marked.has(this.key(box));
    this.count();
  },

  count() {
    const button = document.getElementById("compare-button");
    if (!button) return;
    const size = this.read().size;
    button.textContent = size ? `Compare ${size} selected` : "Compare selected";
    button.disabled = !size;
    const none = document.getElementById("unmark");
    if (none) none.hidden = !size;
  },

  // Submit the selected rows of other pages too.
  complete(form) {
    for (const old of form.querySelectorAll("input[data-kept]")) old.remove();
    const here = new Set([...form.querySelectorAll("[data-mark]")].map((box) => this.key(box)));
    for (const [key, [name, value]] of this.read()) {
      if (here.has(key)) continue;
      const input = document.createElement("input");
      Object.assign(input, { type: "hidden", name, value });
      input.dataset.kept = "";
      form.append(input);
    }
  },
};

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-mark]")) marks.changed(event.target);
});
document.addEventListener("click", (event) => {
  if (event.target.id !== "unmark") return;
  marks.write(new Map());
  marks.restore();
});
document.addEventListener("submit", (event) => {
  if (event.target.id === "compare-trials") marks.complete(event.target);
});
marks.restore();
