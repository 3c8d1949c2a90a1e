// The nodes of a tree while it is walked, as columns: one row a node, in reading order.
// Rules: values, states and the like are sparse, as pairs of row and text, ordered by row. A node can be taken back as
// long as nothing follows it; a modal dialog takes back everything else of its document.

let depths, roleIndexes, numbers, names, values, states, descriptions, frames, links;
let roleNames, roleIndexByName;
let pendingText, focused, owned, ownedElements, tableRole, modals, isModal, isCut, inlined, nesting, wantLinks;
let nodesLeft, unread;

function emit(depth, role, number, name) {
  let index = roleIndexByName.get(role);
  if (index === undefined) {
    index = roleNames.push(role) - 1;
    roleIndexByName.set(role, index);
  }
  nodesLeft--;
  depths.push(depth);
  roleIndexes.push(index);
  numbers.push(number);
  return names.push(name) - 1;
}

/** Forget the nodes from `index` on. */
function retract(index) {
  depths.length = roleIndexes.length = numbers.length = names.length = index;
  for (const sparse of [values, states, descriptions, frames, links]) {
    while (sparse.length && sparse[sparse.length - 2] >= index) sparse.length -= 2;
  }
  while (modals.length && modals[modals.length - 1] >= index) modals.pop();
  while (inlined.length && inlined[inlined.length - 1] >= index) inlined.pop();
}

function flushText(depth) {
  if (pendingText === "") return;
  const text = collapse(pendingText);
  pendingText = "";
  if (text !== "") emit(depth, "", 0, text);
}

function onlyText(index) {
  for (let i = index; i < names.length; i++) if (roleNames[roleIndexes[i]] !== "") return false;
  return true;
}

/** Is everything from `index` on one element that can be acted on itself? */
function isOneActor(index, depth) {
  if (numbers[index] === 0) return false;
  for (let i = index + 1; i < depths.length; i++) if (depths[i] <= depth) return false;
  return true;
}

/** Take one node out; its children move up. */
function remove(index, depth) {
  depths.splice(index, 1);
  roleIndexes.splice(index, 1);
  numbers.splice(index, 1);
  names.splice(index, 1);
  for (let i = index; i < depths.length; i++) if (depths[i] > depth) depths[i]--;
  for (const sparse of [values, states, descriptions, frames, links]) {
    for (let i = sparse.length - 2; i >= 0 && sparse[i] >= index; i -= 2) {
      if (sparse[i] === index) sparse.splice(i, 2);
      else sparse[i]--;
    }
  }
  modals = modals.map((at) => (at > index ? at - 1 : at));
  inlined = inlined.map((at) => (at > index ? at - 1 : at));
}

function addState(index, state) {
  if (states.length && states[states.length - 2] === index) states[states.length - 1] += state;
  else states.push(index, state);
}

function dropState(index, state) {
  for (let i = states.length - 2; i >= 0 && states[i] >= index; i -= 2) {
    if (states[i] === index) {
      states[i + 1] = states[i + 1].replace(state, "");
      if (states[i + 1] === "") states.splice(i, 2);
    }
  }
}

function startWalk(options) {
  depths = [];
  roleIndexes = [];
  numbers = [];
  names = [];
  values = [];
  states = [];
  descriptions = [];
  frames = [];
  links = [];
  roleNames = [];
  roleIndexByName = new Map();
  pendingText = "";
  focused = focusedElement();
  owned = null;
  ownedElements = new Set();
  tableRole = null;
  modals = [];
  isModal = false;
  isCut = false;
  inlined = [];
  nesting = 0;
  unread = 0;
  wantLinks = options.links === true;
  nodesLeft = MAX_NODES;
  candidates = [];
  askedAgain = [];
  startNumbersAt(options.base);
}

/** While a modal dialog is open everything else in its document is inert: of the nodes from `start` on it stays. */
function keepOnly(start, index) {
  let end = index + 1;
  while (end < depths.length && depths[end] > depths[index]) end++;
  retract(end);
  const lift = depths[index] - depths[start];
  for (const column of [depths, roleIndexes, numbers, names]) column.splice(start, index - start);
  for (let i = start; i < depths.length; i++) depths[i] -= lift;
  for (const sparse of [values, states, descriptions, frames, links]) {
    let kept = 0;
    for (let i = 0; i < sparse.length; i += 2) {
      const at = sparse[i];
      if (at >= start && at < index) continue;
      const value = sparse[i + 1];
      sparse[kept++] = at < start ? at : at - (index - start);
      sparse[kept++] = value;
    }
    sparse.length = kept;
  }
  inlined = inlined.filter((at) => at < start || at >= index).map((at) => (at < start ? at : at - (index - start)));
}

/** Numbers as JSON, texts one a line: few characters need escaping on their way out. */
function encode(options) {
  const scroller = scrollerOf(document);
  const facts = {
    title: titleOf(document),
    url: location.href,
    state: readyStateOf(document),
    next: nextNumber,
    candidates: offered.length,
    modal: isModal,
    cut: isCut,
    unread,
    scroll: scroller ? [Math.round(scroller.scrollTop), scroller.clientHeight, scroller.scrollHeight] : [0, 0, 0],
    roles: roleNames,
    depths, indexes: roleIndexes, numbers, frames, inlined,
    states, values, descriptions, links,
  };
  return (JSON.stringify(facts) + "\n" + names.join("\n")).toWellFormed();
}
