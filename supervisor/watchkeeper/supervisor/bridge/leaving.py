"""``beforeunload`` where somebody else closes native dialogs: the bridge asks in their place.

Rules: a listener that comes first stops the event, lets the page's own listeners judge a second one, and
asks only where the browser would: the page wants to stay, and a person has touched it. With the debugger bridge the
answer decides: "leave" lets the event pass unseen, "stay" prevents it, and the native dialog that opens then is closed
by whoever closes them. No synchronous request is allowed at this time, so the XHR bridge only tells that the page would
have asked, and the page is left. Without a bridge pages are left in silence, for otherwise none could ever be.

Source: https://html.spec.whatwg.org/multipage/browsing-the-web.html#prompt-to-unload-a-document
"""

from . import BridgeKind, debugger, xhr

_TEMPLATE = """(() => {
  const {apply} = Reflect;
  const getter = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const {createEvent} = Document.prototype, {addEventListener, dispatchEvent} = EventTarget.prototype;
  const {initEvent, preventDefault, stopImmediatePropagation} = Event.prototype;
  const isPrevented = getter(Event, 'defaultPrevented'), value = getter(BeforeUnloadEvent, 'returnValue');
  const activation = navigator.userActivation, hasBeenActive = getter(UserActivation, 'hasBeenActive');
  %(ask)s
  let judging = false;
  const wantsToStay = () => {
    const second = apply(createEvent, document, ['BeforeUnloadEvent']);
    apply(initEvent, second, ['beforeunload', false, true]);
    judging = true;
    try { apply(dispatchEvent, window, [second]); } finally { judging = false; }
    return apply(hasBeenActive, activation, []) && (apply(isPrevented, second, []) || apply(value, second, []) !== '');
  };
  const earlier = typeof getEventListeners === 'function' ? getEventListeners(window).beforeunload || [] : [];
  const handler = window.onbeforeunload;
  if (handler) window.onbeforeunload = null;
  for (const {listener, useCapture} of earlier) window.removeEventListener('beforeunload', listener, useCapture);
  apply(addEventListener, window, ['beforeunload', (event) => {
    if (judging) return;
    apply(stopImmediatePropagation, event, []);
    if (!wantsToStay()) return;
    const answer = ask('beforeunload', '', '');
    if (answer === undefined || !answer.accept) apply(preventDefault, event, []);
  }, true]);
  for (const {listener, useCapture: capture, once, passive} of earlier)
    window.addEventListener('beforeunload', listener, {capture, once, passive});
  if (handler) window.onbeforeunload = handler;
})()
"""
_SILENT = "const ask = () => ({accept: true});"


def script(bridge: BridgeKind, nonce: str) -> str:
    """The injected script, beside that of the bridge."""
    match bridge:
        case "debugger":
            return _TEMPLATE % {"ask": debugger.ASK} + f"//# sourceURL={debugger.SCRIPT_URL}"
        case "xhr":
            return _TEMPLATE % {"ask": xhr.telling(nonce)}
        case "never":
            return _TEMPLATE % {"ask": _SILENT}
