"""Every command of the browser's own protocol that names an address or a file is known here, and decided upon.

A newer browser that brings another one fails this test until somebody has looked at it.
"""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from fakes.foreign_chromium import ForeignChromium

from watchkeeper.supervisor.core.methods import NAMES_FILES, OPENS_URLS, REFUSED, REFUSED_DOMAINS

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
TELLING = re.compile(
    r"([uU]r[li]|URL|URI)s?$|([uU]r[li]|URL)[A-Z]|[pP]ath|[fF]iles?$|[fF]older|[dD]irectory|[pP]roxy|[sS]erver$|[hH]ost$|^port$"
)
HARMLESS = {
    "Autofill.setAddresses",
    "Browser.addPrivacySandboxEnrollmentOverride",  # names a site that counts as enrolled; opens nothing
    "CacheStorage.requestCachedResponse",  # reads what a page has stored
    "CacheStorage.requestEntries",
    "DOM.pushNodeByPathToFrontend",  # a path of nodes
    "DOMDebugger.removeXHRBreakpoint",
    "DOMDebugger.setXHRBreakpoint",
    "Debugger.setBreakpointByUrl",
    "FedCm.openUrl",  # opens the identity provider's own page; the gate and the frames' rules see it
    "FileSystem.getDirectory",  # the origin's private file system
    "Network.deleteCookies",
    "Network.emulateNetworkConditionsByRule",
    "Network.getCookies",
    "Network.setBlockedURLs",
    "Network.setCookie",
    "Network.setCookies",
    "Page.addCompilationCache",
    "Page.deleteCookie",
    "Page.getResourceContent",  # of what is loaded already
    "Page.produceCompilationCache",
    "Page.searchInResource",
    "Runtime.compileScript",
    "ServiceWorker.skipWaiting",
    "ServiceWorker.startWorker",
    "ServiceWorker.unregister",
    "ServiceWorker.updateRegistration",
    "Storage.setCookies",
}
"""Addresses that say what is meant, and open nothing; the reason where it is not plain."""
BY_OTHER_NAMES = {
    "Page.navigateToHistoryEntry": "checked in the supervisor against the tab's history",
    "Page.reload": "opens what is open",
}


def parameters(protocol: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each command, with the name of each of its parameters, those within objects included."""
    types = {f"{d['domain']}.{t['id']}": t for d in protocol["domains"] for t in d.get("types", ())}

    def within(domain: str, items: list[dict[str, Any]], depth: int) -> Iterator[str]:
        for item in items:
            if item.get("type") != "boolean":
                yield item["name"]
            reference = item.get("items", item).get("$ref")
            if reference and depth < 4:
                full = reference if "." in reference else f"{domain}.{reference}"
                yield from within(full.split(".")[0], types.get(full, {}).get("properties", []), depth + 1)

    for domain in protocol["domains"]:
        for command in domain.get("commands", ()):
            for name in within(domain["domain"], command.get("parameters", []), 0):
                yield f"{domain['domain']}.{command['name']}", name


async def test_no_command_that_names_addresses_or_files_is_unknown(tmp_path: Path) -> None:
    browser = await ForeignChromium.start(tmp_path)
    try:
        protocol = json.loads(await anyio.to_thread.run_sync(_get, f"{browser.url}/json/protocol"))
    finally:
        await browser.end()
    telling = {method for method, name in parameters(protocol) if TELLING.search(name)}
    assert {"Page.navigate", "DOM.setFileInputFiles", "Target.createBrowserContext"} <= telling
    decided = {*OPENS_URLS, *NAMES_FILES, *REFUSED, *HARMLESS, *BY_OTHER_NAMES}
    unknown = {method for method in telling - decided if method.split(".")[0] not in REFUSED_DOMAINS}
    assert unknown == set()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:
        found: bytes = answer.read()
    return found
