// Acting on elements: where to point, what is in the way, and what a script does better than input events.
// Rules: nothing is changed before everything was checked. Results are plain data: {ok: true, ...} or {why: ..., ...}.

const SETTLE_MS = 2000;
const TINY = 3;

/** In a few words what an element is, for messages. */
function describe(element) {
  const tag = tagOf(element);
  const role = roleOf(element, tag);
  const name = nameOf(element, role ?? "button", tag);
  const shown = role && role !== "none" ? role : isEditingHost(element) ? "textbox" : numberByElement.has(element) ? "clickable" : tag;
  return { role: shown, name: name.slice(0, 80), number: numberByElement.get(element) ?? 0 };
}

function describeNumber(number) {
  const element = elementOf(number);
  return element === null ? { why: "gone" } : { ok: true, what: describe(element) };
}

function parentOrHost(element) {
  const slot = slotOf(element);
  if (slot !== null) return slot;
  const parent = parentNodeOf(element);
  return parent === null ? null : parent.nodeType === 1 ? parent : (parent.host ?? null);
}

function isWithin(inner, outer) {
  for (let node = inner; node; node = parentOrHost(node)) if (node === outer) return true;
  return false;
}

/** The topmost element at a point of a document, looked up through shadow roots. */
function topmostAt(inner, x, y) {
  let found = null;
  for (let tree = inner; tree; ) {
    const hit = tree.elementFromPoint(x, y);
    if (hit === null || hit === found) break;
    found = hit;
    tree = shadowOf(hit);
  }
  return found;
}

/** Do clicks on `hit` reach `element`? Parts of it do, and so does a label of it. */
function reaches(hit, element) {
  if (isWithin(hit, element)) return true;
  for (let node = hit; node; node = parentOrHost(node)) if (tagOf(node) === "label") return node.control === element;
  return false;
}

/** What stands for an element on screen: itself, or a label where it is too small or too transparent to be hit. */
function standIn(element) {
  const box = element.getBoundingClientRect();
  if (box.width > TINY && box.height > TINY) return element;
  const label = [...(element.labels ?? [])].find((one) => isShown(one) && one.getBoundingClientRect().width > TINY);
  return label ?? element;
}

function boxesOf(element) {
  return [...element.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
}

function viewOf(element) {
  return element.ownerDocument.defaultView;
}

/** Part of a box that is inside of its document's viewport; null where none is. */
function visiblePart(box, view) {
  const left = Math.max(box.left, 0);
  const top = Math.max(box.top, 0);
  const right = Math.min(box.right, view.innerWidth);
  const bottom = Math.min(box.bottom, view.innerHeight);
  return right - left >= 1 && bottom - top >= 1 ? { left, top, right, bottom } : null;
}

/** Points worth trying, the middle of what can be seen first. */
function* pointsIn(element) {
  const view = viewOf(element);
  for (const box of boxesOf(element).slice(0, 4)) {
    const seen = visiblePart(box, view);
    if (seen === null) continue;
    for (const [across, down] of [[0.5, 0.5], [0.2, 0.5], [0.8, 0.5], [0.5, 0.2], [0.5, 0.8], [0.1, 0.1], [0.9, 0.9]]) {
      yield [seen.left + (seen.right - seen.left) * across, seen.top + (seen.bottom - seen.top) * down];
    }
  }
}

/** A point where the element itself is hit; or what covers it. */
function reachablePoint(element) {
  let cover = null;
  for (const [x, y] of pointsIn(element)) {
    const hit = topmostAt(element.ownerDocument, x, y);
    if (hit === null) continue;
    if (reaches(hit, element)) return { x, y };
    cover ??= hit;
  }
  return { cover };
}

/** From a point in a document to the point in the document of this world, through the frames between. */
function outward(element, x, y) {
  for (let view = viewOf(element); view !== window; ) {
    const frame = view.frameElement;
    if (frame === null) return { why: "gone" };
    const mapped = throughFrame(frame, x, y);
    if (mapped.why) return mapped;
    ({ x, y } = mapped);
    view = viewOf(frame);
  }
  return { ok: true, x, y };
}

/** A point within a frame, in the coordinates of the document that the frame is in. */
function throughFrame(frame, x, y) {
  const box = frame.getBoundingClientRect();
  const style = getComputedStyle(frame);
  const across = frame.offsetWidth ? box.width / frame.offsetWidth : 1;
  const down = frame.offsetHeight ? box.height / frame.offsetHeight : 1;
  const mapped = {
    x: box.left + (frame.clientLeft + parseFloat(style.paddingLeft) + x) * across,
    y: box.top + (frame.clientTop + parseFloat(style.paddingTop) + y) * down,
  };
  const hit = topmostAt(frame.ownerDocument, mapped.x, mapped.y);
  if (hit === null) return { why: "outside" };
  if (hit !== frame) return { why: "covered", by: describe(hit) };
  return mapped;
}

/** The same for a frame of another origin: its content's point in our document, if nothing covers it there. */
function ownerPoint(number, x, y, scroll) {
  const frame = elementOf(number);
  if (frame === null) return { why: "gone" };
  if (scroll) bringIntoView(frame, "nearest");
  const mapped = throughFrame(frame, x, y);
  return mapped.why ? mapped : outward(frame, mapped.x, mapped.y);
}

function bringIntoView(element, block) {
  element.scrollIntoView({ block, inline: block === "nearest" ? "nearest" : "center", behavior: "instant" });
}

function isInView(element) {
  const view = viewOf(element);
  const box = boxesOf(element)[0];
  if (!box) return false;
  const x = box.left + box.width / 2;
  const y = box.top + box.height / 2;
  if (x < 0 || y < 0 || x > view.innerWidth || y > view.innerHeight) return false;
  return view === window || isInView(view.frameElement);
}

/** Animations and transitions that move the element or what it is in. */
function isAnimated(element) {
  for (let view = viewOf(element), inner = element; ; inner = view.frameElement, view = viewOf(inner)) {
    for (const animation of inner.ownerDocument.getAnimations()) {
      const target = animation.effect?.target;
      if (animation.playState === "running" && target && isWithin(inner, target) && moves(animation)) return true;
    }
    if (view === window) return false;
  }
}

const STILL = new Set(
  "opacity color backgroundColor boxShadow outlineColor borderColor fill stroke filter offset easing composite computedOffset".split(" "),
);

function moves(animation) {
  const frames = animation.effect.getKeyframes?.() ?? [];
  return frames.some((frame) => Object.keys(frame).some((property) => !STILL.has(property) && !/color$/i.test(property)));
}

/** Wait until the element stays where it is for two frames; false where it never does. */
async function settled(element) {
  const view = viewOf(element);
  const until = performance.now() + SETTLE_MS;
  let last = "";
  while (performance.now() < until) {
    await new Promise((next) => {
      view.requestAnimationFrame(next);
      setTimeout(next, 100); // a document that is not painted has no frames
    });
    const box = element.getBoundingClientRect();
    const now = `${box.x} ${box.y} ${box.width} ${box.height}`;
    if (now === last) return true;
    last = now;
  }
  return false;
}

/**
 * Where to point in order to act on an element: {ok, x, y, what} in the coordinates of this world's document.
 * `wish`: {enabled: must not be disabled, editable: must take text, force: do not mind what covers it}.
 */
async function locate(number, wish) {
  let element = elementOf(number);
  if (element === null) return { why: "gone" };
  watchClicks();
  const what = describe(element);
  if (wish.enabled && isDisabledHere(element)) return { why: "disabled", what };
  if (wish.editable && !isEditable(element)) return { why: element.readOnly ? "readonly" : "wrong_kind", what };
  element = standIn(element);
  if (!isShown(element)) return { why: "hidden", what };
  if (isAnimated(element) && !(await settled(element))) return { why: "moving", what };
  let scrolled = !isInView(element);
  if (scrolled) bringIntoView(element, "center");
  if (boxesOf(element).length === 0) return { why: "no_size", what };
  let point = null;
  for (const block of [null, "center", "end", "start"]) {
    if (block !== null) {
      bringIntoView(element, block);
      scrolled = true;
    }
    const inner = reachablePoint(element);
    if (inner.x === undefined) {
      point = inner.cover ? { why: "covered", by: describe(inner.cover), what } : { why: "outside", what };
      continue;
    }
    point = outward(element, inner.x, inner.y);
    if (point.ok) return { ...point, what, scrolled };
    point.what = what;
  }
  if (wish.force) {
    const box = boxesOf(element)[0];
    return { ok: true, x: box.left + box.width / 2, y: box.top + box.height / 2, what, forced: true };
  }
  return point;
}

function isDisabledHere(element) {
  for (let node = element; node; node = parentOrHost(node)) {
    if (attributeOf(node, "aria-disabled") === "true" || (node === element && node.matches(":disabled"))) return true;
  }
  return false;
}

function isTextField(element) {
  if (tagOf(element) === "textarea") return true;
  return tagOf(element) === "input" && !["button", "submit", "reset", "image", "checkbox", "radio", "file", "hidden"].includes(element.type);
}

function isEditable(element) {
  return (isTextField(element) && !element.readOnly) || element.isContentEditable;
}

const SET_DIRECTLY = new Set("color date datetime-local month range time week".split(" "));

/**
 * Get a field ready to take `text`: focus it and select what is in it, so that input events replace it. Fields that
 * take no typing are set at once. {ok, done: set already, empty: nothing to select}.
 */
function prepareFill(number, text) {
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  const what = describe(element);
  if (isDisabledHere(element)) return { why: "disabled", what };
  if (!isEditable(element)) return { why: element.readOnly ? "readonly" : "wrong_kind", what };
  if (!isShown(element)) return { why: "hidden", what };
  if (isSecret(element)) OBSCURED.add(element);
  if (!isInView(element)) bringIntoView(element, "center");
  element.focus({ preventScroll: true });
  if (tagOf(element) === "input" && SET_DIRECTLY.has(element.type)) return { ...setDirectly(element, text), what };
  if (isTextField(element)) {
    element.select();
    return { ok: true, empty: element.value === "", what };
  }
  selectContents(element);
  return { ok: true, empty: element.textContent === "", what };
}

/** Move the caret behind what is in a field, so that typing adds to it. */
function prepareType(number) {
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  const what = describe(element);
  if (isDisabledHere(element)) return { why: "disabled", what };
  if (!isShown(element)) return { why: "hidden", what };
  if (isSecret(element)) OBSCURED.add(element);
  if (!isInView(element)) bringIntoView(element, "center");
  const had = element.getRootNode().activeElement === element;
  element.focus({ preventScroll: true });
  if (had || !isEditable(element)) return { ok: true, what };
  if (isTextField(element)) {
    try {
      element.setSelectionRange(element.value.length, element.value.length);
    } catch {
      // number and email fields have no selection that a script may set; the caret is at the end anyway
    }
  } else {
    selectContents(element);
    viewOf(element).getSelection().collapseToEnd();
  }
  return { ok: true, what };
}

function selectContents(element) {
  const range = element.ownerDocument.createRange();
  range.selectNodeContents(element);
  const selection = viewOf(element).getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

function setDirectly(element, text) {
  const before = element.value;
  element.value = text.trim();
  if (element.value === "" && text.trim() !== "") {
    element.value = before;
    return { why: "bad_value", expects: FORMATS[element.type] ?? element.type };
  }
  announceChange(element);
  return { ok: true, done: true };
}

const FORMATS = {
  color: "#rrggbb", date: "YYYY-MM-DD", "datetime-local": "YYYY-MM-DDThh:mm", month: "YYYY-MM", time: "hh:mm",
  week: "YYYY-Www", range: "a number",
};

function announceChange(element) {
  element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  element.dispatchEvent(new Event("change", { bubbles: true }));
}

/** What a field holds after it was filled; a secret is only compared. */
async function fieldState(number, wanted) {
  await nextTurn();
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  const value = isTextField(element) ? element.value : (element.innerText ?? "").replace(/\n$/, "");
  if (isSecret(element)) return { ok: true, same: value === wanted };
  return { ok: true, same: value === wanted, value: value.slice(0, 500) };
}

/** Choose options of a <select> by value or label. */
function choose(number, wanted) {
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  const what = describe(element);
  if (tagOf(element) !== "select") return { why: "wrong_kind", what };
  if (isDisabledHere(element)) return { why: "disabled", what };
  const options = [...element.options];
  const labels = options.map((option) => collapse(option.label || option.text));
  if (wanted.length > 1 && !element.multiple) return { why: "one_only", what };
  const chosen = [];
  for (const one of wanted) {
    const text = collapse(one);
    let index = options.findIndex((option) => option.value === one);
    if (index < 0) index = labels.indexOf(text);
    if (index < 0) index = labels.findIndex((label) => label.toLowerCase() === text.toLowerCase());
    if (index < 0) return { why: "no_option", what, missing: one, options: labels.slice(0, 40), total: labels.length };
    if (options[index].matches(":disabled")) return { why: "disabled_option", what, missing: one };
    chosen.push(options[index]);
  }
  const before = options.filter((option) => option.selected);
  const same = before.length === chosen.length && chosen.every((option) => before.includes(option));
  if (!same) {
    element.focus({ preventScroll: true });
    for (const option of options) option.selected = chosen.includes(option);
    announceChange(element);
  }
  return { ok: true, what, same, chosen: chosen.map((option) => collapse(option.label || option.text)) };
}

/** Whether a checkable element is checked: true, false, "mixed"; null where it cannot be. */
function checkedState(number) {
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  const control = tagOf(element) === "label" && element.control ? element.control : element;
  const what = describe(element);
  if (tagOf(control) === "input" && (control.type === "checkbox" || control.type === "radio")) {
    return { ok: true, what, radio: control.type === "radio", state: control.indeterminate ? "mixed" : control.checked };
  }
  const aria = control.getAttribute("aria-checked") ?? control.getAttribute("aria-pressed");
  if (aria === null && !CHECKABLE.has(control.getAttribute("role"))) return { why: "wrong_kind", what };
  return { ok: true, what, radio: control.getAttribute("role") === "radio", state: aria === "mixed" ? "mixed" : aria === "true" };
}

/** Scroll an element into view, or what is scrollable at it by a distance. Gives what moved. */
function scrollBy(number, dx, dy, edge) {
  const element = number === 0 ? scrollerOf(document) : elementOf(number);
  if (element === null) return { why: "gone" };
  const what = number === 0 ? null : describe(element);
  if (edge === "view") {
    bringIntoView(element, "center");
    return { ok: true, what };
  }
  const scroller = scrollerFor(element, dx, dy, edge);
  const before = [scroller.scrollLeft, scroller.scrollTop];
  if (edge === "top") scroller.scrollTo({ top: 0, behavior: "instant" });
  else if (edge === "bottom") scroller.scrollTo({ top: scroller.scrollHeight, behavior: "instant" });
  else scroller.scrollBy({ left: dx, top: dy, behavior: "instant" });
  return {
    ok: true,
    what,
    moved: [scroller.scrollLeft - before[0], scroller.scrollTop - before[1]],
    position: [Math.round(scroller.scrollLeft), Math.round(scroller.scrollTop)],
    size: [scroller.scrollWidth, scroller.scrollHeight, scroller.clientWidth, scroller.clientHeight],
    page: scroller === scrollerOf(document),
  };
}

/** The element itself where it scrolls, else the nearest one around it that does, else the page. */
function scrollerFor(element, dx, dy, edge) {
  const vertical = edge !== null || dy !== 0;
  for (let node = element; node; node = parentOrHost(node)) {
    const style = getComputedStyle(node);
    const scrolls = vertical
      ? /auto|scroll/.test(style.overflowY) && node.scrollHeight > node.clientHeight + 1
      : /auto|scroll/.test(style.overflowX) && node.scrollWidth > node.clientWidth + 1;
    if (scrolls && tagOf(node) !== "body") return node;
  }
  const inner = element.ownerDocument;
  return scrollerOf(inner) ?? rootElementOf(inner);
}

/** Does the element take part in the drag and drop of HTML? Otherwise it is dragged with the pointer. */
function isDraggable(number) {
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  for (let node = element; node; node = parentOrHost(node)) {
    if (attributeOf(node, "draggable") === "true") return { ok: true, draggable: true };
  }
  return { ok: true, draggable: false };
}

/** Drag and drop as HTML has it: the events with one DataTransfer that the page fills and reads. */
function dragAndDrop(from, to) {
  let source = elementOf(from);
  const target = elementOf(to);
  if (source === null || target === null) return { why: "gone" };
  while (source.getAttribute("draggable") !== "true" && parentOrHost(source)) source = parentOrHost(source);
  bringIntoView(target, "nearest");
  const data = new DataTransfer();
  const fire = (element, type, cancelable) => {
    const box = element.getBoundingClientRect();
    const event = new DragEvent(type, {
      bubbles: true, cancelable, composed: true, dataTransfer: data,
      clientX: box.left + box.width / 2, clientY: box.top + box.height / 2,
    });
    return !element.dispatchEvent(event);
  };
  if (fire(source, "dragstart", true)) return { why: "refused", what: describe(source) };
  fire(source, "drag", true);
  fire(target, "dragenter", true);
  const accepted = fire(target, "dragover", true);
  if (accepted) fire(target, "drop", true);
  else fire(target, "dragleave", false);
  fire(source, "dragend", false);
  return { ok: true, accepted, what: describe(source), onto: describe(target) };
}

/** The element that clicks of the next action land on, so that a miss is told. */
let landed = null;
let watching = false;

function watchClicks() {
  landed = null;
  if (watching) return;
  watching = true;
  addEventListener("mousedown", (event) => (landed = new WeakRef(event.composedPath()[0])), { capture: true, passive: true });
}

/** A turn of the event loop: what the page put off to its next turn has begun then. */
function nextTurn() {
  return new Promise((resolve) => setTimeout(resolve));
}

/** After a click: did it land on the element? */
async function clickLanded(number) {
  await nextTurn();
  const hit = landed?.deref() ?? null;
  const element = elementOf(number);
  if (hit === null || element === null || hit.nodeType !== 1) return { ok: true };
  if (viewOf(element) !== window) return { ok: true };
  if (reaches(hit, element) || isWithin(element, hit) || !hit.isConnected) return { ok: true };
  return { ok: true, landed: describe(hit) };
}

/** The box of an element in this world's document, for pictures of it. */
function boxOf(number) {
  const element = elementOf(number);
  if (element === null) return { why: "gone" };
  if (!isInView(element)) bringIntoView(element, "center");
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return { why: "no_size", what: describe(element) };
  const corner = outwardUnchecked(element, box.left, box.top);
  return { ok: true, x: corner.x, y: corner.y, width: box.width, height: box.height, what: describe(element) };
}

function outwardUnchecked(element, x, y) {
  for (let view = viewOf(element); view !== window && view.frameElement; view = viewOf(view.frameElement)) {
    const frame = view.frameElement;
    const box = frame.getBoundingClientRect();
    const style = getComputedStyle(frame);
    x += box.left + frame.clientLeft + parseFloat(style.paddingLeft);
    y += box.top + frame.clientTop + parseFloat(style.paddingTop);
  }
  return { x, y };
}

function ownerCorner(number, x, y) {
  const frame = elementOf(number);
  if (frame === null) return { why: "gone" };
  const box = frame.getBoundingClientRect();
  const style = getComputedStyle(frame);
  const inner = { x: box.left + frame.clientLeft + parseFloat(style.paddingLeft) + x, y: box.top + frame.clientTop + parseFloat(style.paddingTop) + y };
  return { ok: true, ...outwardUnchecked(frame, inner.x, inner.y) };
}
