// Accessible names, as browsers compute them.
// Source: https://www.w3.org/TR/accname-1.2/
// Rules: a name is one line, trimmed, white space collapsed. Values of password fields never enter a name.

const NAME_FROM_CONTENT = new Set(
  `button cell checkbox columnheader gridcell heading link math menuitem menuitemcheckbox menuitemradio option radio
   rowheader switch tab term tooltip treeitem`.split(/\s+/),
);
const NAME_LENGTH = 2000;
const NAME_DEPTH = 60;

function collapse(text) {
  return text.replace(/[\t\n\f\r \u200b]+/g, " ").trim();
}

function nameOf(element, role, tag) {
  const labelled = labelledBy(element);
  if (labelled) return labelled;
  const aria = element.getAttribute("aria-label");
  if (aria !== null && aria.trim()) return collapse(aria).slice(0, NAME_LENGTH);
  const native = nativeName(element, tag);
  if (native) return native.slice(0, NAME_LENGTH);
  if (NAME_FROM_CONTENT.has(role) && tag !== "input" && tag !== "select" && tag !== "textarea") {
    const content = contentName(element);
    if (content) return content;
  }
  const title = element.getAttribute("title");
  if (title !== null && title.trim() && role !== null) return collapse(title);
  if (role === "textbox" || role === "searchbox" || role === "combobox" || role === "spinbutton") {
    return collapse(element.getAttribute("placeholder") ?? element.getAttribute("aria-placeholder") ?? "");
  }
  return "";
}

function labelledBy(element) {
  const ids = element.getAttribute("aria-labelledby");
  if (ids === null) return "";
  return byIds(element, ids).map((target) => referencedName(target, element)).filter(Boolean).join(" ").slice(0, NAME_LENGTH);
}

function byIds(element, ids) {
  const root = element.getRootNode();
  if (!root.getElementById) return [];
  return ids.split(/\s+/).filter(Boolean).map((id) => root.getElementById(id)).filter(Boolean);
}

/** What an element contributes that is named by reference: hidden ones count too, further references do not. */
function referencedName(target, asker) {
  const aria = target.getAttribute("aria-label");
  if (aria !== null && aria.trim()) return collapse(aria);
  const tag = tagOf(target);
  if (target !== asker) {
    const own = embeddedValue(target, tag);
    if (own !== null) return own;
  }
  const native = nativeName(target, tag);
  if (native) return native;
  const content = collapse(contentText(target, !isShown(target), 0, asker));
  return content || collapse(target.getAttribute("title") ?? "");
}

function nativeName(element, tag) {
  switch (tag) {
    case "input":
      switch (element.type) {
        case "submit": return collapse(element.getAttribute("value") ?? "Submit") || labelText(element);
        case "reset": return collapse(element.getAttribute("value") ?? "Reset") || labelText(element);
        case "button": return collapse(element.value) || labelText(element);
        case "image":
          return labelText(element) || collapse(element.alt) || collapse(element.getAttribute("value") ?? "") ||
            collapse(element.title) || "Submit";
        default: return labelText(element);
      }
    case "button": case "meter": case "output": case "progress": case "select": case "textarea":
      return labelText(element);
    case "img": case "area": return collapse(element.getAttribute("alt") ?? "");
    case "fieldset": return firstChildName(element, "legend");
    case "table": return firstChildName(element, "caption");
    case "optgroup": return collapse(element.label);
    case "option": return collapse(element.label || element.text);
    case "svg": case "g": return firstChildName(element, "title");
    default:
      if (element.constructor.formAssociated) return labelText(element);
      return "";
  }
}

function labelText(element) {
  const labels = element.labels;
  if (!labels?.length) return "";
  const parts = [];
  for (const label of labels) {
    const aria = label.getAttribute("aria-label")?.trim();
    parts.push(aria || collapse(contentText(label, false, 0, element)));
  }
  return parts.filter(Boolean).join(" ");
}

function firstChildName(element, tag) {
  for (const child of element.children) if (tagOf(child) === tag) return collapse(contentText(child, false, 0, null));
  return "";
}

function contentName(element) {
  const only = element.firstChild;
  if (only !== null && only.nextSibling === null && only.nodeType === 3 && !hasPseudoText) {
    return collapse(only.nodeValue).slice(0, NAME_LENGTH); // by far the most frequent case
  }
  return collapse(contentText(element, false, 0, null)).slice(0, NAME_LENGTH);
}

/** What a control inside a name contributes: its value. Null where it is not a control. */
function embeddedValue(element, tag) {
  const role = ariaRole(element) ?? (tag === "input" ? inputRole(element) : TAG_ROLES[tag]);
  switch (role) {
    case "textbox": case "searchbox": case "combobox": case "spinbutton": case "date": case "time": case "datetime":
    case "month": case "week": case "color":
      if (tag === "input" || tag === "textarea") return element.type === "password" ? "" : collapse(element.value);
      return collapse(contentText(element, false, 0, element));
    case "slider": case "progressbar": case "meter": case "scrollbar":
      if (tag === "input" || tag === "progress" || tag === "meter") return String(element.value);
      return element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow") ?? "";
    default:
      if (tag === "select") return [...element.selectedOptions].map((option) => collapse(option.label)).join(" ");
      return null;
  }
}

/** Text of an element in reading order; block boxes are set off by spaces. `self` contributes nothing of its own. */
function contentText(element, evenHidden, depth, self) {
  if (depth > NAME_DEPTH) return "";
  let text = hasPseudoText ? pseudoText(element, "::before") : "";
  for (const child of renderedChildren(element)) {
    if (text.length > NAME_LENGTH * 4) break;
    if (child.nodeType === 3) {
      text += child.nodeValue;
    } else if (child.nodeType === 1 && child !== self) {
      text += childText(child, evenHidden, depth, self);
    }
  }
  return hasPseudoText ? text + pseudoText(element, "::after") : text;
}

function childText(child, evenHidden, depth, self) {
  const tag = tagOf(child);
  if (tag === "br") return " ";
  if (NEVER_SHOWN.has(tag)) return "";
  if (!evenHidden && (!isShown(child) || child.getAttribute("aria-hidden") === "true")) return "";
  const value = embeddedValue(child, tag);
  if (value !== null) return ` ${value} `;
  const aria = child.getAttribute("aria-label")?.trim();
  if (aria) return isInline(child) ? aria : ` ${aria} `;
  if (tag === "img" || tag === "svg" || tag === "area") {
    const name = nativeName(child, tag) || (child.getAttribute("title") ?? "");
    return tag === "svg" && !name ? contentText(child, evenHidden, depth + 1, self) : name;
  }
  if (child.getAttribute("role") === "group" && depth === 0) return ""; // the children of a treeitem
  const text = contentText(child, evenHidden, depth + 1, self);
  return isInline(child) ? text : ` ${text} `;
}

function isInline(element) {
  const display = getComputedStyle(element).display;
  return display === "inline" || display === "contents";
}

function isShown(element) {
  if (element.checkVisibility({ visibilityProperty: true })) return true;
  const style = getComputedStyle(element);
  return style.display === "contents" && style.visibility === "visible";
}

let hasPseudoText = true;

/** Text that a style sheet puts before or after an element, its `alt` form included. */
function pseudoText(element, which) {
  const content = getComputedStyle(element, which).content;
  if (content === "none" || content === "normal" || content === "") return "";
  const alternative = content.lastIndexOf(" / ");
  const strings = (alternative >= 0 ? content.slice(alternative) : content).match(/"(?:[^"\\]|\\.)*"/g);
  if (strings === null) return "";
  const text = strings.map((string) => string.slice(1, -1).replace(/\\(.)/g, "$1")).join("");
  return /[\uE000-\uF8FF]/.test(text) ? "" : text; // glyphs of an icon font say nothing
}

/** The description: aria-describedby, aria-description, or a title that is not the name already. */
function descriptionOf(element, name) {
  const ids = element.getAttribute("aria-describedby");
  if (ids !== null) {
    const text = byIds(element, ids).map((target) => referencedName(target, element)).filter(Boolean).join(" ");
    if (text) return text.slice(0, 300);
  }
  const own = element.getAttribute("aria-description")?.trim();
  if (own) return collapse(own).slice(0, 300);
  const title = element.getAttribute("title");
  if (title !== null && collapse(title) !== name) return collapse(title).slice(0, 300);
  return "";
}
