// Pairs of texts on the page whose boxes lie over each other by more than two pixels either way.
() => {
  const shown = (one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true, contentVisibilityAuto: true });
  const boxes = [];
  const add = (owner, text, rects) => {
    for (const box of rects) {
      if (box.width > 1 && box.height > 1 && box.right > 0) boxes.push({ owner, text: text.trim().slice(0, 40), box });
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, owner = node.parentElement;
    if (!node.data.trim() || !owner || owner.closest("svg, script, style, option, .hidden") || !shown(owner)) continue;
    const scroll = owner.closest(".scroll");
    if (scroll && scroll.scrollWidth > scroll.clientWidth) continue; // cut at the edge of what scrolls
    const range = document.createRange();
    range.selectNodeContents(node);
    add(owner, node.data, range.getClientRects());
  }
  for (const text of document.querySelectorAll(".plot svg text, .modebar-group")) {
    const hidden = text.closest(".hoverlayer, defs, .modebar-btn") || !shown(text);
    const words = text.textContent || "the mode bar";
    if (!hidden && !text.closest(".parcoords")) add(text, words, [text.getBoundingClientRect()]);
  }
  boxes.sort((one, two) => one.box.top - two.box.top);
  const found = [];
  boxes.forEach((one, place) => {
    for (const two of boxes.slice(place + 1)) {
      if (two.box.top > one.box.bottom) break;
      if (one.owner.contains(two.owner) || two.owner.contains(one.owner)) continue;
      const wide = Math.min(one.box.right, two.box.right) - Math.max(one.box.left, two.box.left);
      const high = Math.min(one.box.bottom, two.box.bottom) - Math.max(one.box.top, two.box.top);
      if (wide > 2 && high > 2) found.push(`${one.text} | ${two.text}`);
    }
  });
  return found;
};
