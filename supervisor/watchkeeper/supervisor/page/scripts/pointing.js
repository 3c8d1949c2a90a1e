// Where an element is on screen, what is in the way, and whether a click reached it.
// Rules: nothing is changed but the scroll position. Results are plain data: {ok: true, ...} or {why: ..., ...}.

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
  let frames = 0;
  let last = "";
  while (performance.now() < until) {
    const painted = await new Promise((next) => {
      view.requestAnimationFrame(() => next(true));
      setTimeout(() => next(false), 250);
    });
    if (!painted) continue; // nothing moves between frames, however long they take
    frames++;
    const box = element.getBoundingClientRect();
    const now = `${box.x} ${box.y} ${box.width} ${box.height}`;
    if (now === last) return true;
    last = now;
  }
  return frames === 0; // a document that is not painted does not move either
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
