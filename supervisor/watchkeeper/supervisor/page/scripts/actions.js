// Acting on elements where a script does better than input events, and what has to be ready before input events.
// Rules: nothing is changed before everything was checked. Results are plain data: {ok: true, ...} or {why: ..., ...}.

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
