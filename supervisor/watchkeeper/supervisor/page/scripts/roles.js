// Which role an element has: the `role` attribute, else what HTML-AAM gives its tag.
// Sources: https://www.w3.org/TR/wai-aria-1.2/, https://www.w3.org/TR/html-aam-1.0/
// `null` is a generic element: it is looked through.

const ARIA_ROLES = new Set(
  `alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox
   complementary contentinfo definition dialog document feed figure form generic grid gridcell group heading image
   img link list listbox listitem log main marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter
   navigation none note option paragraph presentation progressbar radio radiogroup region row rowgroup rowheader
   scrollbar search searchbox separator slider spinbutton status switch tab table tablist tabpanel term textbox timer
   toolbar tooltip tree treegrid treeitem directory`.split(/\s+/),
);
const SYNONYMS = { img: "image", directory: "list", generic: null, rowgroup: null, caption: null, code: null };

const INPUT_ROLES = {
  button: "button", checkbox: "checkbox", color: "color", date: "date", "datetime-local": "datetime", email: "textbox",
  file: "file", image: "button", month: "month", number: "spinbutton", password: "textbox", radio: "radio",
  range: "slider", reset: "button", search: "searchbox", submit: "button", tel: "textbox", text: "textbox",
  time: "time", url: "textbox", week: "week",
};
const TAG_ROLES = {
  address: "group", article: "article", aside: "complementary", audio: "audio", blockquote: "blockquote",
  button: "button", canvas: "canvas", dd: "definition", dfn: "term", dialog: "dialog", dl: "list", dt: "term",
  embed: "object", fieldset: "group", figure: "figure", form: "form", h1: "heading", h2: "heading", h3: "heading",
  h4: "heading", h5: "heading", h6: "heading", hgroup: "group", hr: "separator", iframe: "iframe", frame: "iframe",
  li: "listitem", main: "main", math: "math", menu: "list", meter: "meter", nav: "navigation", object: "object",
  ol: "list", optgroup: "group", option: "option", output: "status", p: "paragraph", progress: "progressbar",
  search: "search", summary: "summary", svg: "svg", table: "table", td: "cell", textarea: "textbox", th: "th",
  tr: "row", ul: "list", video: "video", details: "group",
};
const SCOPES_HEADER = "article,aside,main,nav,section,[role=article],[role=complementary],[role=main],[role=navigation],[role=region]";

function isFocusable(element) {
  if (element.hasAttribute("tabindex")) return true;
  switch (tagOf(element)) {
    case "a": case "area": return element.hasAttribute("href");
    case "button": case "input": case "select": case "textarea": return !element.disabled;
    case "iframe": case "summary": return true;
    default: return isEditingHost(element);
  }
}

function isEditingHost(element) {
  const value = element.getAttribute("contenteditable");
  return value !== null && value.toLowerCase() !== "false";
}

function hasNaming(element) {
  return Boolean(element.getAttribute("aria-label")?.trim()) || element.hasAttribute("aria-labelledby");
}

/** The first valid token of the role attribute; undefined where the tag decides. */
function ariaRole(element) {
  const attribute = element.getAttribute("role");
  if (attribute === null) return undefined;
  for (const token of attribute.toLowerCase().split(/\s+/)) {
    if (!ARIA_ROLES.has(token)) continue;
    if (token === "none" || token === "presentation") {
      if (isFocusable(element) || hasNaming(element)) return undefined;
      return "none";
    }
    if (token === "region" && !hasNaming(element) && !element.title) return null;
    return token in SYNONYMS ? SYNONYMS[token] : token;
  }
  return undefined;
}

/** The role that is shown; null for a generic element, "none" for one that is presentational. */
function roleOf(element, name) {
  const aria = ariaRole(element);
  if (aria !== undefined) return aria;
  switch (name) {
    case "a": case "area": return element.hasAttribute("href") || element.href?.baseVal ? "link" : null;
    case "input": return inputRole(element);
    case "select": return element.multiple || element.size > 1 ? "listbox" : "combobox";
    case "img": return element.getAttribute("alt") === "" && !hasNaming(element) && !element.title ? "none" : "image";
    case "section": return hasNaming(element) || element.title ? "region" : null;
    case "header": return isScoped(element) ? null : "banner";
    case "footer": return isScoped(element) ? null : "contentinfo";
    case "summary": return isSummary(element, element.parentElement) ? "button" : null;
    case "svg": return svgRole(element);
    case "table": return isLayoutTable(element) ? "none" : "table";
    case "td": return cellRole(element);
    case "th": return headerRole(element);
    case "g": return element.querySelector(":scope > title") ? "group" : null;
    case "abbr": return null;
    case "option": case "optgroup": return null; // shown with their <select>
    default: {
      const role = TAG_ROLES[name];
      if (role !== undefined) return role;
      return null;
    }
  }
}

function isScoped(element) {
  const parent = element.parentElement;
  return parent !== null && closestOf(parent, SCOPES_HEADER) !== null;
}

function isSummary(element, parent) {
  return parent !== null && tagOf(parent) === "details" && parent.querySelector(":scope > summary") === element;
}

function inputRole(element) {
  const role = INPUT_ROLES[element.type] ?? "textbox";
  return (role === "textbox" || role === "searchbox") && element.hasAttribute("list") ? "combobox" : role;
}

function svgRole(element) {
  if (hasNaming(element) || element.querySelector(":scope > title")) return "image";
  return null;
}

function cellRole(element) {
  const table = element.closest("table");
  const role = table?.getAttribute("role");
  return role === "grid" || role === "treegrid" ? "gridcell" : "cell";
}

function headerRole(element) {
  const table = element.closest("table");
  if (table === null) return null;
  const scope = element.scope;
  if (scope === "row" || scope === "rowgroup") return "rowheader";
  if (scope === "col" || scope === "colgroup" || element.closest("thead")) return "columnheader";
  // Without a scope: a header with data beside it heads its row.
  const row = element.parentElement;
  return row?.querySelector(":scope > td") ? "rowheader" : "columnheader";
}

/** A table that only arranges things: one row or one column without headers, or tables within it. */
function isLayoutTable(table) {
  if (table.getAttribute("role") || hasNaming(table)) return false;
  if (table.caption || table.tHead || table.tFoot || table.querySelector("th,col,colgroup")) return false;
  const rows = table.rows;
  if (rows.length <= 1 || rows[0].cells.length <= 1) return true;
  return table.querySelector("table") !== null;
}
