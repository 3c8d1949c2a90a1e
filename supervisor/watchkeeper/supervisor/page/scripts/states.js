// States and values of elements, as words of a fixed vocabulary: page text never enters a state.

const OBSCURED = new WeakSet(); // fields that were seen as password fields stay secret when the page shows them

function isSecret(element) {
  if (element.type === "password") OBSCURED.add(element);
  return OBSCURED.has(element);
}

const CHECKABLE = new Set("checkbox radio switch menuitemcheckbox menuitemradio option treeitem".split(" "));
const SELECTABLE = new Set("option tab row gridcell treeitem columnheader rowheader".split(" "));
const CURRENT = new Set("page step location date time true".split(" "));
const POPUPS = new Set("menu listbox tree grid dialog".split(" "));

function statesOf(element, role, tag, focused) {
  let states = "";
  const attribute = (name) => element.getAttribute(name);
  if (tag === "input" && (element.type === "checkbox" || element.type === "radio")) {
    if (element.indeterminate && element.type === "checkbox") states += " mixed";
    else if (element.checked) states += " checked";
  } else if (CHECKABLE.has(role)) {
    const checked = attribute("aria-checked");
    if (checked === "true") states += " checked";
    else if (checked === "mixed") states += " mixed";
  }
  if (tag === "summary") states += element.parentElement.open ? " expanded" : " collapsed";
  if (!element.hasAttributes()) {
    if (element.disabled !== undefined && element.matches(":disabled")) states += " disabled";
    return element === focused ? `${states} focused` : states;
  }
  const pressed = attribute("aria-pressed");
  if (pressed === "true") states += " pressed";
  else if (pressed === "mixed") states += " pressed=mixed";
  if (SELECTABLE.has(role) && attribute("aria-selected") === "true") states += " selected";
  const expanded = attribute("aria-expanded");
  if (expanded === "true") states += " expanded";
  else if (expanded === "false") states += " collapsed";
  else if (element.popoverTargetElement) {
    states += element.popoverTargetElement.matches(":popover-open") ? " expanded" : " collapsed";
  }
  if (role !== "group" && isDisabled(element)) states += " disabled";
  if (element.required === true || attribute("aria-required") === "true") states += " required";
  if (isInvalid(element)) states += " invalid";
  if ((element.readOnly === true && tag !== "select" && role !== "slider") || attribute("aria-readonly") === "true") {
    states += " readonly";
  }
  const current = attribute("aria-current");
  if (current !== null && CURRENT.has(current)) states += current === "true" ? " current" : ` current=${current}`;
  const popup = attribute("aria-haspopup");
  if (popup === "true" || popup === "menu") states += " haspopup=menu";
  else if (popup !== null && POPUPS.has(popup) && role !== "combobox") states += ` haspopup=${popup}`;
  const sort = attribute("aria-sort");
  if (sort === "ascending" || sort === "descending") states += ` sort=${sort}`;
  if (tag === "dialog" ? element.matches(":modal") : attribute("aria-modal") === "true") states += " modal";
  if (attribute("aria-busy") === "true") states += " busy";
  if (role === "listbox" && (element.multiple || attribute("aria-multiselectable") === "true")) {
    states += " multiselectable";
  }
  if (element === focused) states += " focused";
  return states;
}

function isDisabled(element) {
  return element.getAttribute("aria-disabled") === "true" || element.matches(":disabled");
}

function isInvalid(element) {
  const aria = element.getAttribute("aria-invalid");
  if (aria !== null) return aria !== "false" && aria !== "";
  const validity = element.validity;
  return validity !== undefined && element.willValidate === true && !validity.valid && !validity.valueMissing;
}

function levelOf(element, tag) {
  const aria = parseInt(element.getAttribute("aria-level"), 10);
  if (aria >= 1) return aria;
  return /^h[1-6]$/.test(tag) ? Number(tag[1]) : 2;
}

const VALUE_LENGTH = 2000;

/** The value of a control as text; "" where it has none or it must not be told. */
function valueOf(element, role, tag) {
  if (isSecret(element)) return "";
  if (tag === "select" && role === "listbox") return ""; // its options say what is selected
  if (tag === "select") return [...element.selectedOptions].map((option) => collapse(option.label)).join(", ");
  if (tag === "input") {
    if (element.type === "file") return [...element.files].map((file) => file.name).join(", ");
    if (role === "checkbox" || role === "radio" || role === "switch" || role === "button") return "";
    return element.value.slice(0, VALUE_LENGTH);
  }
  if (tag === "textarea") return element.value.slice(0, VALUE_LENGTH);
  if (tag === "progress") return element.hasAttribute("value") ? String(element.value) : "";
  if (tag === "meter") return String(element.value);
  switch (role) {
    case "slider": case "spinbutton": case "progressbar": case "scrollbar": case "meter":
      return (element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow") ?? "").slice(0, 200);
    case "textbox": case "searchbox": case "combobox":
      return (element.innerText ?? "").trim().slice(0, VALUE_LENGTH);
    default: return "";
  }
}
