// What this world remembers of its document and of the frames of the same origin in it: element numbers (the `12` of
// ref `e12`) and closed shadow roots. Frames of other origins have worlds of their own.
// Rules: a number is given once and never to another element; it holds its element weakly, so it dies with it.
// Nothing here is visible to the page: its scripts live in another world.

// A form's controls and a document's images and forms can take the place of its properties (DOM clobbering), also for
// us. What we read of an element that may be a form, or of a document, is therefore read by the getter itself.
const getter = (prototype, name) => {
  const get = Object.getOwnPropertyDescriptor(prototype, name).get;
  return (object) => get.call(object);
};
const tagOf = getter(Element.prototype, "localName");
const parentOf = getter(Node.prototype, "parentElement");
const parentNodeOf = getter(Node.prototype, "parentNode");
const slotOf = getter(Element.prototype, "assignedSlot");
const firstChildOf = getter(Node.prototype, "firstChild");
const nextSiblingOf = getter(Node.prototype, "nextSibling");
const openShadowOf = getter(Element.prototype, "shadowRoot");
const controlsOf = getter(HTMLFormElement.prototype, "elements");
const bodyOf = getter(Document.prototype, "body");
const rootElementOf = getter(Document.prototype, "documentElement");
const scrollerOf = getter(Document.prototype, "scrollingElement");
const titleOf = getter(Document.prototype, "title");
const readyStateOf = getter(Document.prototype, "readyState");
const activeIn = (tree) =>
  getter(tree.nodeType === 9 ? Document.prototype : ShadowRoot.prototype, "activeElement")(tree);
const closestOf = (element, selector) => Element.prototype.closest.call(element, selector);
const attributeOf = (element, name) => Element.prototype.getAttribute.call(element, name);

/** Does a control of this form stand in for one of its properties that we read? */
function isClobbered(form) {
  const stands = (element) => READ_OF_FORMS.has(attributeOf(element, "name")) || READ_OF_FORMS.has(attributeOf(element, "id"));
  for (const control of controlsOf(form)) if (stands(control)) return true;
  for (const image of Element.prototype.getElementsByTagName.call(form, "img")) if (stands(image)) return true;
  return false;
}

const READ_OF_FORMS = new Set(
  `assignedSlot checkVisibility childNodes children clientHeight clientWidth contains disabled firstChild
   firstElementChild getAttribute getBoundingClientRect getClientRects getRootNode hasAttribute hasAttributes inert
   isConnected labels localName matches nextSibling nodeType open ownerDocument parentElement parentNode
   popoverTargetElement querySelector querySelectorAll readOnly required scrollHeight scrollWidth shadowRoot title type
   validity value willValidate getElementsByTagName closest constructor`.split(/\s+/),
);

const elementByNumber = new Map(); // number -> WeakRef<Element>
const numberByElement = new WeakMap();
const closedRoots = new WeakMap(); // host -> ShadowRoot, told to us by the supervisor
let nextNumber = 1;
let hasClosedRoots = false;

const reclaimed = new FinalizationRegistry((number) => elementByNumber.delete(number));

function numberOf(element) {
  let number = numberByElement.get(element);
  if (number === undefined) {
    number = nextNumber++;
    numberByElement.set(element, number);
    elementByNumber.set(number, new WeakRef(element));
    reclaimed.register(element, number);
  }
  return number;
}

/** The element of a number while it is in a document that is shown; otherwise null. */
function elementOf(number) {
  const element = elementByNumber.get(number)?.deref();
  return element?.isConnected && element.ownerDocument.defaultView !== null ? element : null;
}

function elementsOf(numbers) {
  return numbers.map(elementOf);
}

/** Is this number an iframe whose document we read ourselves? */
function isReadable(number) {
  const element = elementOf(number);
  return element !== null && isFrame(element) && documentIn(element) !== null;
}

/** The document in a frame, where it is of our origin; null otherwise. */
function documentIn(frame) {
  try {
    const inner = frame.contentDocument;
    return inner && rootElementOf(inner) ? inner : null;
  } catch {
    return null;
  }
}

/** Numbers below `base` belong to documents that this frame showed before. */
function startNumbersAt(base) {
  if (base > nextNumber) nextNumber = base;
}

function shadowOf(element) {
  return openShadowOf(element) ?? (hasClosedRoots ? (closedRoots.get(element) ?? null) : null);
}

/** Take note of the closed shadow root that a node is in, or is; false where it is known already, or none. */
function adoptClosedRoot(node) {
  const root = node.getRootNode();
  if (root.nodeType !== 11 || !root.host || root.host.shadowRoot !== null || closedRoots.has(root.host)) return false;
  closedRoots.set(root.host, root);
  hasClosedRoots = true;
  return true;
}

/** All slots of the trees that we know, rendered or not. */
function countSlots() {
  let count = 0;
  const trees = [document];
  while (trees.length) {
    const tree = trees.pop();
    const query = tree.nodeType === 9 ? Document.prototype.querySelectorAll : DocumentFragment.prototype.querySelectorAll;
    for (const element of query.call(tree, "*")) {
      if (tagOf(element) === "slot") count++;
      const inner = shadowOf(element) ?? (isFrame(element) ? documentIn(element) : null);
      if (inner !== null) trees.push(inner);
    }
  }
  return count;
}

/** Children as they are rendered: a host shows its shadow tree, a slot what is assigned to it. */
function renderedChildren(node) {
  if (node.nodeType === 1) {
    const shadow = shadowOf(node);
    if (shadow !== null) return shadow.childNodes;
    if (tagOf(node) === "slot") {
      const assigned = node.assignedNodes();
      if (assigned.length) return assigned;
    }
  }
  return node.childNodes;
}

/** The element that has the focus, looked up through shadow roots and frames. */
function focusedElement() {
  let focused = null;
  for (let inner = activeIn(document); inner; ) {
    if (tagOf(inner) === "body" || tagOf(inner) === "html") break;
    focused = inner;
    const tree = shadowOf(inner) ?? (isFrame(inner) ? documentIn(inner) : null);
    inner = tree === null ? null : activeIn(tree);
  }
  return focused;
}

function isFrame(element) {
  const tag = tagOf(element);
  return tag === "iframe" || tag === "frame";
}

// --- closed shadow roots: a script cannot see them, the supervisor can. We name the elements worth asking about. ---

const MAY_HOST = new Map(
  "article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span"
    .split(" ").map((name) => [name, "empty"]),
);
const CANDIDATES_AT_ONCE = 2000;
const ASKED_AGAIN_AT_ONCE = 24;
const asked = new WeakSet();
let candidates = [];
let askedAgain = [];
let rotation = 0;

/** Called for every element of the tree: could a closed shadow root hide here? */
function considerHost(element, name) {
  let kind = MAY_HOST.get(name);
  if (kind === undefined) MAY_HOST.set(name, (kind = name.includes("-") ? "always" : "never"));
  if (kind === "never" || (kind === "empty" && element.firstChild !== null)) return;
  if (element.shadowRoot !== null || closedRoots.has(element)) return;
  if (!asked.has(element)) candidates.push(element);
  else if (element.firstChild === null) askedAgain.push(element);
}

/** An element outside the rendered tree although its parent is inside: the parent hosts a shadow tree. */
function suspectHost(element) {
  if (element && !closedRoots.has(element) && element.shadowRoot === null && !candidates.includes(element)) {
    candidates.push(element);
  }
}

/** New candidates all, and of those that had no root when they were last asked about, some in turn. */
function chosenCandidates() {
  const again = [];
  for (let i = 0; i < Math.min(ASKED_AGAIN_AT_ONCE, askedAgain.length); i++) {
    again.push(askedAgain[rotation++ % askedAgain.length]);
  }
  const chosen = candidates.slice(0, CANDIDATES_AT_ONCE).concat(again);
  candidates = [];
  askedAgain = [];
  return chosen;
}

let offered = [];

function takeCandidates() {
  for (const element of offered) asked.add(element);
  const taken = offered;
  offered = [];
  return taken;
}
