"""What has to be known of single CDP methods before they are passed on.

Rules: tables only. A method that would take the browser out of the supervisor's hands is refused with the way that
serves instead; a method that reaches other tasks' targets is restricted by ``routing``.

Source: https://chromedevtools.github.io/devtools-protocol/tot/
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_DIALOG = "Use browser_dialog: it answers by id, knows every open dialog and reports what the page got."
_OURS = "The supervisor depends on it. Nothing needs to be done: it is on for every frame."
_NAVIGATE = "Use browser_navigate."

REFUSED: Mapping[str, str] = {
    "Browser.close": "Use browser_close, or end the server.",
    "Browser.crash": "It would end every task of this browser.",
    "Browser.crashGpuProcess": "It would disturb every task of this browser.",
    "Debugger.disable": _OURS,
    "Debugger.enable": "A paused page answers nothing. Use Runtime.evaluate.",
    "Debugger.pause": "A paused page answers nothing. Use Runtime.evaluate.",
    "Fetch.disable": _OURS,
    "Fetch.enable": "A request that nobody continues hangs its page. Use Network.setBlockedURLs to block requests.",
    "Inspector.disable": _OURS,
    "Log.disable": _OURS,
    "Network.setRequestInterception": "A request that nobody continues hangs its page. Use Network.setBlockedURLs.",
    "Extensions.loadUnpacked": "An extension reaches past every rule for pages. Use browser.extra_args.",
    "Page.disable": "Without it dialogs could no longer be answered.",
    "Page.handleJavaScriptDialog": _DIALOG,
    "Page.setLifecycleEventsEnabled": _OURS,
    "Runtime.disable": _OURS,
    "Runtime.runIfWaitingForDebugger": _OURS,
    "Target.attachToBrowserTarget": "It would reach other tasks. Browser methods work without it.",
    "Target.attachToTarget": "Every tab and frame is attached already. Give frame_id or target_id.",
    "Target.autoAttachRelated": _OURS,
    "Target.createBrowserContext": "Give another task_id: each task has a browser context of its own.",
    "Target.detachFromTarget": _OURS,
    "Target.disposeBrowserContext": "Use browser_close with the task_id.",
    "Target.exposeDevToolsProtocol": "It would hand the browser to the page.",
    "Target.sendMessageToTarget": "Give frame_id or target_id.",
    "Target.setAutoAttach": _OURS,
    "Target.setDiscoverTargets": _OURS,
    "Target.setRemoteLocations": _OURS,
    "Tracing.start": "It records every task of this browser.",
}

REFUSED_DOMAINS: Mapping[str, str] = {
    "Cast": "It would send the tab to devices of the network.",
    "PWA": "Installed applications are not of this task.",
    "Tethering": "It would open ports of this machine.",
}
"""Domains none of whose methods are passed on."""

FileAccess = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class FileUse:
    """``parameter``: dotted path to the file or folder names."""

    parameter: str
    access: FileAccess


OPENS_URLS: Mapping[str, tuple[str, ...]] = {
    "Fetch.continueRequest": ("url",),
    "Network.loadNetworkResource": ("url",),
    "Page.navigate": ("url",),
    "Target.createTarget": ("url",),
}
"""Methods by which an address is opened or fetched, and the parameters that name it."""

NAMES_FILES: Mapping[str, FileUse] = {
    "Browser.setDownloadBehavior": FileUse("downloadPath", "write"),
    "DOM.setFileInputFiles": FileUse("files", "read"),
    "Input.dispatchDragEvent": FileUse("data.files", "read"),
    "Page.setDownloadBehavior": FileUse("downloadPath", "write"),
}
"""Methods by which pages get files of this machine, or files come to it."""

SETS_DOWNLOADS = frozenset({"Browser.setDownloadBehavior", "Page.setDownloadBehavior"})
"""Of those, the ones that without a folder would save where the browser thinks fit."""

BROWSER_DOMAINS = frozenset({"Browser", "IO", "Memory", "Storage", "SystemInfo", "Target"})
"""Domains that go to the browser-level session when neither a frame nor a target is named."""

TAKES_FRAME_ID = frozenset(
    {
        "Accessibility.getFullAXTree",
        "Accessibility.getRootAXNode",
        "CSS.createStyleSheet",
        "Page.createIsolatedWorld",
        "Page.getResourceContent",
        "Page.navigate",
        "Page.searchInResource",
        "Page.setDocumentContent",
    }
)
"""Methods whose ``frameId`` parameter confines them to one frame of a session."""

TAKES_CONTEXT = frozenset({"Runtime.evaluate", "Runtime.callFunctionOn"})
"""Methods whose ``uniqueContextId`` confines them to one execution context."""

ADDRESSES_OBJECT = frozenset(
    {"objectId", "nodeId", "backendNodeId", "executionContextId", "uniqueContextId", "styleSheetId", "scriptId"}
)
"""Parameters that point at a thing which already lies in one frame."""

BROWSER_PROCESS = frozenset(
    {
        "Page.getNavigationHistory",
        "Page.navigate",
        "Page.navigateToHistoryEntry",
        "Page.reload",
        "Page.startScreencast",
        "Page.stopLoading",
        "Page.stopScreencast",
    }
)
"""Page methods that the browser process answers although the renderer waits behind a native dialog or is gone."""

INSTEAD_IN_FRAME: Mapping[str, str] = {
    "DOM": "Runtime.evaluate with this frame_id reaches its document; or read contentDocument from the parent frame.",
    "Page": "Runtime.evaluate with this frame_id reads and changes the frame.",
    "Accessibility": "Accessibility.getFullAXTree takes this frame_id.",
    "Input": "Input goes to the whole page: call it without frame_id, in page coordinates.",
}
