// The tree of one document: what can be read and what can be acted on, in reading order, as columns.
// Rules: generic elements are looked through; text of one block is one text node; what is not rendered, aria-hidden or
// inert is left out; text that already is the name of something is not said twice. An element that can be acted on
// gets a number. The walk only reads; it causes at most one layout.

const NEVER_SHOWN = new Set(
  "script style template noscript head meta link title base datalist param source track col colgroup rp map".split(" "),
);
const ACTED_ON = new Set(
  `button link textbox searchbox combobox listbox checkbox radio switch slider spinbutton menuitem menuitemcheckbox
   menuitemradio tab option treeitem file color date time datetime month week clickable scrollable canvas video audio
   iframe object scrollbar`.split(/\s+/),
);
const POINTED_AT = new Set("dialog alertdialog table grid treegrid list form main article image region".split(" "));
const MUTES_CONTENT = new Set(
  `button link checkbox radio switch heading menuitem menuitemcheckbox menuitemradio option tab tooltip math image
   treeitem`.split(/\s+/),
);
const NO_CHILDREN = new Set(
  `textbox searchbox slider spinbutton file color date time datetime month week progressbar meter scrollbar separator
   image audio video`.split(/\s+/),
);
const INLINE = new Set(["inline", "contents"]);
const VISIBLE = { visibilityProperty: true };
const MAX_NESTING = 1000;
const MAX_NODES = 400000;

function visitChildren(element, depth, muted, pointer, visible) {
  if (nesting >= MAX_NESTING || nodesLeft <= 0) {
    isCut = true;
    return;
  }
  nesting++;
  if (openShadowOf(element) === null && !hasClosedRoots && tagOf(element) !== "slot") {
    for (let child = firstChildOf(element); child !== null; child = nextSiblingOf(child)) {
      visitChild(child, depth, muted, pointer, visible);
    }
  } else {
    for (const child of renderedChildren(element)) visitChild(child, depth, muted, pointer, visible);
  }
  nesting--;
  const ownedHere = owned?.get(element);
  if (ownedHere) for (const child of ownedHere) visit(child, depth, muted, pointer, visible, true);
}

function visitChild(child, depth, muted, pointer, visible) {
  const type = child.nodeType;
  if (type === 3) {
    if (visible && !muted) pendingText += child.nodeValue;
  } else if (type === 1) {
    const level = nesting;
    try {
      visit(child, depth, muted, pointer, visible, false);
    } catch {
      unread++; // one odd element must not cost the sight of all others; that it is missing is told
      nesting = level;
    }
  }
}

function visit(element, depth, muted, pointer, visible, asOwned) {
  const tag = tagOf(element);
  if (tag === "form" && isClobbered(element)) {
    visitClobbered(element, depth, muted, pointer);
    return;
  }
  if (NEVER_SHOWN.has(tag) || element.getAttribute("aria-hidden") === "true" || element.inert) return;
  if (owned !== null && !asOwned && ownedElements.has(element)) return;
  if (element.checkVisibility(VISIBLE)) {
    visible = true;
  } else {
    const style = getComputedStyle(element);
    const display = style.display;
    if (display === "") suspectHost(parentOf(element));
    if (display === "none" || display === "") return;
    if (display === "contents") visible = style.visibility === "visible";
    else if (style.visibility !== "visible") visible = false;
    else if (!isCanvasFallback(element)) return; // its contents are skipped by the layout
  }
  considerHost(element, tag);
  if (!visible) {
    visitChildren(element, depth, muted, pointer, false);
    return;
  }
  if (tag === "br") {
    pendingText += " ";
    return;
  }
  if (tag === "legend" || tag === "caption" || tag === "figcaption") muted ||= namesParent(element, tag);
  let role = roleOf(element, tag);
  if (role !== null) role = roleInContext(element, role, tag);
  if (role === null || role === "none") visitGeneric(element, tag, depth, muted, pointer);
  else visitSemantic(element, role, tag, depth, muted, pointer);
}

/** A form of which we can read the content only; its attributes by the safe way. */
function visitClobbered(form, depth, muted, pointer) {
  if (attributeOf(form, "aria-hidden") === "true" || attributeOf(form, "inert") !== null) return;
  if (getComputedStyle(form).display === "none") return;
  flushText(depth);
  const index = emit(depth, "form", numberOf(form), collapse(attributeOf(form, "aria-label") ?? ""));
  visitChildren(form, depth + 1, muted, pointer, getComputedStyle(form).visibility === "visible");
  flushText(depth + 1);
  if (names.length === index + 1) retract(index);
}

/** What stands within a canvas is not rendered, yet it is what the canvas means to those who cannot see it. */
function isCanvasFallback(element) {
  return closestOf(element, "canvas") !== null && tagOf(element) !== "canvas";
}

/** The text of a legend or caption is the name of what it stands in. */
function namesParent(element, tag) {
  const parent = element.parentElement;
  return parent !== null && (tag === "legend" ? tagOf(parent) === "fieldset" : tagOf(parent) === "table") && !hasNaming(parent);
}

/** Parts of a presentational list or table are generic themselves. */
function roleInContext(element, role, tag) {
  if (tag === "li" && role === "listitem") {
    const parent = parentOf(element);
    const theirs = parent === null ? null : attributeOf(parent, "role");
    return theirs === "none" || theirs === "presentation" ? null : role;
  }
  if ((tag === "tr" || tag === "td" || tag === "th") && tableRole === "none" && !element.hasAttribute("role")) return null;
  return role;
}

function visitGeneric(element, tag, depth, muted, pointer) {
  const style = getComputedStyle(element);
  const inline = INLINE.has(style.display);
  const isPointer = style.cursor === "pointer";
  const acts = element.hasAttributes() && actsByAttribute(element, tag);
  const scrolls = element.firstElementChild !== null && scrollsItself(element, style);
  const named = hasNaming(element) && !muted;
  const wasTable = tableRole;
  if (tag === "table") tableRole = "none";
  if (isEditingHost(element)) {
    visitSemantic(element, "textbox", tag, depth, muted, isPointer);
  } else if (tag === "label") {
    visitLabel(element, depth, muted, pointer || isPointer);
  } else if (acts || (isPointer && !pointer && !muted) || scrolls || named) {
    flushText(depth);
    const role = acts || (isPointer && !pointer && !muted) ? "clickable" : scrolls ? "scrollable" : "group";
    visitActing(element, role, tag, depth, muted, isPointer, acts || scrolls || named);
  } else if (inline) {
    visitChildren(element, depth, muted, pointer || isPointer, true);
  } else if (style.display.startsWith("inline-")) {
    pendingText += " ";
    visitChildren(element, depth, muted, pointer || isPointer, true);
    pendingText += " ";
  } else {
    flushText(depth);
    visitChildren(element, depth, muted, pointer || isPointer, true);
    flushText(depth);
  }
  tableRole = wasTable;
}

function actsByAttribute(element, tag) {
  if (element.hasAttribute("onclick") || element.getAttribute("draggable") === "true") return true;
  const index = element.getAttribute("tabindex");
  return index !== null && parseInt(index, 10) >= 0 && tag !== "body" && tag !== "html";
}

function scrollsItself(element, style) {
  const y = style.overflowY;
  if (y !== "auto" && y !== "scroll" && style.overflowX !== "auto" && style.overflowX !== "scroll") return false;
  if (tagOf(element) === "body" || tagOf(element) === "html") return false;
  return (
    (element.scrollHeight > element.clientHeight + 1 && (y === "auto" || y === "scroll")) ||
    (element.scrollWidth > element.clientWidth + 1 && (style.overflowX === "auto" || style.overflowX === "scroll"))
  );
}

/** An element without a role that can be clicked or scrolled: named by its text, or a container of what is in it. */
function visitActing(element, role, tag, depth, muted, pointer, certain) {
  const index = emit(depth, role, role === "group" ? 0 : numberOf(element), nameOf(element, null, tag));
  if (role === "clickable") addStates(index, element, role, tag);
  else if (element === focused) states.push(index, " focused");
  visitChildren(element, depth + 1, muted, pointer, true);
  flushText(depth + 1);
  const count = names.length - index - 1;
  if (role === "clickable") {
    if (count > 0 && onlyText(index + 1)) {
      const text = names.slice(index + 1).join(" ");
      if (!names[index]) names[index] = text.slice(0, NAME_LENGTH);
      retract(index + 1);
    } else if (!certain && count > 0 && isOneActor(index + 1, depth + 1)) {
      remove(index, depth);
      return;
    } else if (!certain && count === 0 && muted) {
      retract(index);
      return;
    }
    if (names[index] === "" && names.length === index + 1) addHint(index, element);
  } else if (count === 0) {
    retract(index);
  }
}

/** A label's text is the name of its control, so it is not said twice. Where the control is not rendered, it acts. */
function visitLabel(element, depth, muted, pointer) {
  const control = element.control;
  if (control === null) {
    visitChildren(element, depth, muted, pointer, true);
    return;
  }
  if (isShown(control)) {
    const says = !hasNaming(control);
    if (!element.contains(control)) flushText(depth);
    visitChildren(element, depth, muted || says, pointer, true);
    return;
  }
  flushText(depth);
  const index = emit(depth, "clickable", numberOf(element), contentName(element));
  if (control.checked) states.push(index, " checked");
  visitChildren(element, depth + 1, true, true, true);
}

function visitSemantic(element, role, tag, depth, muted, pointer) {
  if (muted && !ACTED_ON.has(role)) {
    visitChildren(element, depth, true, pointer, true);
    return;
  }
  flushText(depth);
  switch (role) {
    case "paragraph": return visitFlow(element, depth, muted, pointer);
    case "cell": case "gridcell": case "columnheader": case "rowheader":
      if (visitPlainCell(element, role, depth, pointer)) return;
      break;
    case "iframe": return visitFrame(element, tag, depth);
    case "combobox": case "listbox":
      if (tag === "select") return visitSelect(element, role, depth);
      break;
    case "separator": if (!hasNaming(element) && !isFocusable(element)) return;
  }
  const wasTable = tableRole;
  if (tag === "table") tableRole = role;
  const style = ACTED_ON.has(role) ? null : getComputedStyle(element);
  const isPointer = style === null ? true : style.cursor === "pointer";
  const acts = style !== null && ((element.hasAttributes() && actsByAttribute(element, tag)) || (isPointer && !pointer));
  const scrolls = style !== null && element.firstElementChild !== null && scrollsItself(element, style);
  const numbered = ACTED_ON.has(role) || acts || scrolls || POINTED_AT.has(role) || element === focused;
  const content = role === "cell" || role === "gridcell" || role === "columnheader" || role === "rowheader" || role === "term";
  const name = content && !hasNaming(element) ? "" : nameOf(element, role, tag);
  if (role === "image" && name === "" && !acts) {
    if (tag !== "img" && tag !== "svg") visitChildren(element, depth, muted, pointer, true);
    return flushText(depth);
  }
  const index = emit(depth, role === "heading" ? `h${levelOf(element, tag)}` : role, numbered ? numberOf(element) : 0, name);
  addStates(index, element, role, tag);
  if (scrolls) addState(index, " scrollable");
  if (acts && !ACTED_ON.has(role)) addState(index, " clickable");
  if (role === "link" && (wantLinks || name === "")) links.push(index, linkOf(element));
  else if (name === "" && ACTED_ON.has(role)) addHint(index, element);
  if (NO_CHILDREN.has(role)) return;
  if (tag === "dialog" && element.matches(":modal")) modals.push(index);
  const mutes = MUTES_CONTENT.has(role) && name !== "";
  if (!mutes || element.firstElementChild !== null || shadowOf(element) !== null || hasNaming(element)) {
    if (mutes && saysMore(element, name)) visitChildren(element, depth + 1, false, isPointer, true);
    else visitChildren(element, depth + 1, muted || mutes, pointer || isPointer, true);
    flushText(depth + 1);
  }
  tableRole = wasTable;
  const empty = names.length === index + 1;
  if (empty && name === "" && !ACTED_ON.has(role) && !acts && !scrolls && element !== focused && !content) {
    if (role !== "status" && role !== "alert" && role !== "progressbar" && role !== "meter") retract(index);
  } else if (acts && !ACTED_ON.has(role) && isOneActor(index + 1, depth + 1) && role !== "row" && !actsByAttribute(element, tag)) {
    numbers[index] = 0;
    dropState(index, " clickable");
  }
}

/** Whether a name given by an attribute hides text that the eye can read. */
function saysMore(element, name) {
  if (!hasNaming(element)) return false;
  const text = contentName(element);
  return text.length > 2 && !name.toLowerCase().includes(text.toLowerCase());
}

/** A block of text with things in it: one text, or a flow of texts and elements that belongs on one line. */
function visitFlow(element, depth, muted, pointer) {
  const style = getComputedStyle(element);
  if (style.cursor === "pointer" && !pointer) {
    visitActing(element, "clickable", "p", depth, muted, true, element.hasAttribute("onclick"));
    return;
  }
  const index = emit(depth, "paragraph", 0, "");
  visitChildren(element, depth + 1, muted, pointer, true);
  flushText(depth + 1);
  const count = names.length - index - 1;
  if (count === 0) retract(index);
  else if (count === 1) remove(index, depth);
}

/** The cell that holds nothing but text, by far the most frequent one. */
function visitPlainCell(element, role, depth, pointer) {
  if (element.firstElementChild !== null) return false;
  if (element.hasAttributes() && (hasNaming(element) || element.hasAttribute("onclick") || element.hasAttribute("tabindex"))) {
    return false;
  }
  if (!pointer && getComputedStyle(element).cursor === "pointer") return false;
  const index = emit(depth, role, 0, collapse(element.textContent));
  if (element.hasAttributes()) addStates(index, element, role, "td");
  return true;
}

/** A frame of our origin is read on the spot; of another only its place is noted. */
function visitFrame(element, tag, depth) {
  const index = emit(depth, "iframe", numberOf(element), nameOf(element, "iframe", tag));
  frames.push(index, numbers[index]);
  const inner = documentIn(element);
  if (inner === null) return;
  inlined.push(index);
  visitDocument(inner, depth + 1);
}

const OPTIONS_TOLD = 2000;

function visitSelect(element, role, depth) {
  const index = emit(depth, role, numberOf(element), nameOf(element, role, "select"));
  addStates(index, element, role, "select");
  let told = 0;
  let group = null;
  for (const option of element.options) {
    if (told++ >= OPTIONS_TOLD) break;
    const parent = tagOf(option.parentElement) === "optgroup" ? option.parentElement : null;
    if (parent !== group && parent !== null) emit(depth + 1, "group", 0, collapse(parent.label));
    group = parent;
    const i = emit(group === null ? depth + 1 : depth + 2, "option", 0, collapse(option.label || option.text));
    const state = (option.selected ? " selected" : "") + (option.matches(":disabled") ? " disabled" : "");
    if (state) states.push(i, state);
  }
}

function addStates(index, element, role, tag) {
  let state = statesOf(element, role, tag, focused);
  if (isSecret(element)) state += element.value ? " password filled" : " password";
  if (state) states.push(index, state);
  if (NO_CHILDREN.has(role) || role === "combobox" || role === "listbox") {
    const value = valueOf(element, role, tag);
    if (value) values.push(index, value);
  }
  if (ACTED_ON.has(role)) {
    const description = descriptionOf(element, names[index]);
    if (description) descriptions.push(index, description);
  }
}

/** Something to know an unnamed element by. */
function addHint(index, element) {
  const src = element.querySelector?.("img[src]")?.getAttribute("src") ?? element.getAttribute("src");
  const use = element.querySelector?.("use")?.getAttribute("href");
  const hint =
    element.getAttribute("data-testid") || element.id || element.getAttribute("name") || use ||
    (src && !src.startsWith("data:") ? src.split("/").pop() : "") || element.getAttribute("class") ||
    element.firstElementChild?.getAttribute("class") || "";
  if (hint) links.push(index, `#${collapse(hint).slice(0, 40)}`);
}

function linkOf(element) {
  const href = element.getAttribute("href") ?? element.getAttribute("xlink:href") ?? "";
  return collapse(href).slice(0, 200);
}

/** aria-owns: who owns whom in this tree; the first owner wins. */
function readOwners(root) {
  const owners = root.querySelectorAll("[aria-owns]");
  if (owners.length === 0) return;
  owned ??= new Map();
  for (const owner of owners) {
    const list = byIds(owner, owner.getAttribute("aria-owns"))
      .filter((element) => !ownedElements.has(element) && !element.contains(owner));
    list.forEach((element) => ownedElements.add(element));
    if (list.length) owned.set(owner, list);
  }
}

/** The tree of the document, or of the element with number `options.root`, as one string; null: no such element. */
function snapshot(options) {
  startWalk(options);
  if (options.root) {
    const root = elementOf(options.root);
    if (root === null) return null;
    readOwners(root.ownerDocument);
    if (isFrame(root) && documentIn(root) !== null) visitDocument(documentIn(root), 0);
    else visit(root, 0, false, false, true, true);
    flushText(0);
  } else {
    visitDocument(document, 0);
  }
  offered = chosenCandidates();
  return encode(options);
}

function visitDocument(inner, depth) {
  const outer = [owned, ownedElements, tableRole, modals, pendingText];
  owned = null;
  ownedElements = new Set();
  tableRole = null;
  modals = [];
  pendingText = "";
  const start = names.length;
  readOwners(inner);
  const body = bodyOf(inner) ?? rootElementOf(inner);
  if (tagOf(body) === "frameset") {
    for (const frame of body.querySelectorAll("frame")) visitFrame(frame, "frame", depth);
  } else if (isEditingHost(body) || inner.designMode === "on") {
    visitSemantic(body, "textbox", "body", depth, false, false);
  } else if (body.getAttribute("aria-hidden") !== "true") {
    visitChildren(body, depth, false, getComputedStyle(body).cursor === "pointer", isShown(body));
  }
  flushText(depth);
  if (modals.length) {
    keepOnly(start, modals[modals.length - 1]);
    if (inner === document) isModal = true;
  }
  [owned, ownedElements, tableRole, modals, pendingText] = outer;
}
