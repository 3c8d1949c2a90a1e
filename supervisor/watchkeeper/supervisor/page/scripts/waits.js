// Waiting inside of the page: each promise ends by itself after its time, in seconds, at the latest.

/** All text that can be read in a document and its frames of our origin, shadow trees included. */
function hasText(root, wanted) {
  const inner = root.nodeType === 9 ? (bodyOf(root) ?? rootElementOf(root)) : root;
  if (collapse(inner.innerText ?? "").toLowerCase().includes(wanted)) return true;
  for (const element of inner.querySelectorAll("*")) {
    const tree = shadowOf(element);
    if (tree !== null) {
      for (const child of tree.children) if (hasTextIn(child, wanted)) return true;
    } else if (isFrame(element)) {
      const document = documentIn(element);
      if (document !== null && hasText(document, wanted)) return true;
    }
  }
  return false;
}

function hasTextIn(element, wanted) {
  if (tagOf(element) === "style" || tagOf(element) === "script") return false;
  if (collapse(element.innerText ?? "").toLowerCase().includes(wanted)) return true;
  for (const inner of element.querySelectorAll("*")) {
    const tree = shadowOf(inner);
    if (tree !== null) for (const child of tree.children) if (hasTextIn(child, wanted)) return true;
  }
  return false;
}

/** Wait until a text is there, or is not. True when it came about. */
function untilText(text, present, seconds) {
  const wanted = collapse(text).toLowerCase();
  return until(() => hasText(document, wanted) === present, seconds);
}

/** Wait until an element is gone, hidden, or (`present`) shown. */
function untilElement(number, present, seconds) {
  return until(() => {
    const element = elementOf(number);
    return (element !== null && isShown(element)) === present;
  }, seconds);
}

/** Look again whenever the document changes, and five times a second for what changes without it. */
function until(condition, seconds) {
  return new Promise((resolve) => {
    let scheduled = false;
    let last = 0;
    const look = () => {
      scheduled = false;
      last = performance.now();
      if (condition()) end(true);
    };
    const soon = () => {
      if (scheduled) return;
      scheduled = true;
      setTimeout(look, Math.max(0, 50 - (performance.now() - last)));
    };
    const observer = new MutationObserver(soon);
    const timer = setInterval(look, 200);
    const limit = setTimeout(() => end(condition()), seconds * 1000);
    const end = (result) => {
      observer.disconnect();
      clearInterval(timer);
      clearTimeout(limit);
      resolve(result);
    };
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    look();
  });
}

/** Wait until the document has loaded. */
function untilLoaded(seconds) {
  if (readyStateOf(document) === "complete") return true;
  return new Promise((resolve) => {
    addEventListener("load", () => resolve(true), { once: true });
    setTimeout(() => resolve(readyStateOf(document) === "complete"), seconds * 1000);
  });
}

/** The next frame, so that what was done is laid out and painted; at once where nothing is painted. */
function nextFrame() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => resolve(true));
    setTimeout(() => resolve(false), 100);
  });
}
