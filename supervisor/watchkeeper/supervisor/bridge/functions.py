"""The functions that take the place of ``alert``, ``confirm`` and ``prompt``, but for the part that asks us.

Rules: what a page can observe stays as it is natively: names, lengths, not being constructors, conversion of arguments
(``alert(undefined)`` says "undefined", ``confirm(undefined)`` says nothing, symbols throw), return values, errors for a
foreign ``this``. Everything the functions use is taken before the page's scripts run, so that a page which replaces
built-ins neither breaks nor fools them. Where nobody answers, the native function runs.

Source: https://html.spec.whatwg.org/multipage/timers-and-user-prompts.html#simple-dialogs
"""

_TEMPLATE = """(() => {
  const {alert, confirm, prompt} = window;
  const {defineProperty} = Object;
  const {apply} = Reflect;
  const foreign = (it) => it !== undefined && it !== null && it !== window;
  %(ask)s
  const bridged = {
    alert() {
      if (foreign(this)) return apply(alert, this, arguments);
      const message = arguments.length === 0 ? '' : `${arguments[0]}`;
      const answer = ask('alert', message, '');
      if (answer === undefined) return apply(alert, window, [message]);
    },
    confirm() {
      if (foreign(this)) return apply(confirm, this, arguments);
      const message = arguments[0] === undefined ? '' : `${arguments[0]}`;
      const answer = ask('confirm', message, '');
      return answer === undefined ? apply(confirm, window, [message]) : answer.accept;
    },
    prompt() {
      if (foreign(this)) return apply(prompt, this, arguments);
      const message = arguments[0] === undefined ? '' : `${arguments[0]}`;
      const fallback = arguments[1] === undefined ? '' : `${arguments[1]}`;
      const answer = ask('prompt', message, fallback);
      if (answer === undefined) return apply(prompt, window, [message, fallback]);
      return answer.accept ? answer.text : null;
    },
  };
  for (const name of ['alert', 'confirm', 'prompt'])
    defineProperty(window, name, {value: bridged[name], writable: true, enumerable: true, configurable: true});
})()
"""


def bridged_functions(ask: str) -> str:
    """The script; ``ask`` defines ``ask(type, message, fallback)``.

    It gives ``{accept, text}``, or undefined where the question could not be put.
    """
    return _TEMPLATE % {"ask": ask}
