"""Which addresses may be opened, in every notation that a browser reads."""

import pytest

from watchkeeper.server.security.url_policy import UrlPolicy, is_loopback_host
from watchkeeper.server.settings import Settings


def policy(**browser: object) -> UrlPolicy:
    return UrlPolicy(Settings.model_validate({"browser": browser}))


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/",
        "http://localhost:3000/x",
        "http://192.168.1.5/",
        "about:blank",
        "about:blank#x",
        "data:text/html,x",
        "blob:https://example.com/1",
        "  https://example.com",
    ],
)
def test_pages_may_be_opened(url: str) -> None:
    assert policy()(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "localhost:3000/x",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "f\tile:///etc/passwd",
        "\x01file:///etc/passwd",
        "view-source:file:///etc/passwd",
        "view-source:https://example.com",
        "chrome://settings",
        "devtools://devtools",
        "javascript:alert(1)",
        "ftp://example.com/",
        "blob:file:///x",
        "http://",
        "http://[::1",
        "http://169.254.169.254/latest/meta-data",
        "http://169.254.169.254./",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/",
        "http://metadata.google.internal/",
        "http:\\\\169.254.169.254\\",
    ],
)
def test_other_schemes_and_metadata_addresses_may_not(url: str) -> None:
    assert policy()(url) is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost./",
        "http://a.localhost/",
        "http://0x7f.1/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://0/",
    ],
)
def test_private_addresses_can_be_refused(url: str) -> None:
    refused = policy(allow_private_network=False)(url)
    assert refused is not None
    assert "browser.allow_private_network" in refused
    assert policy(allow_private_network=True)(url) is None


def test_a_server_for_others_opens_no_private_addresses_unless_told_so() -> None:
    away = {"server": {"transport": "http", "host": "0.0.0.0"}}
    assert UrlPolicy(Settings.model_validate(away))("http://127.0.0.1/") is not None
    assert UrlPolicy(Settings.model_validate({"server": {"transport": "http"}}))("http://127.0.0.1/") is None


def test_hosts_are_allowed_and_blocked_with_wildcards_and_ports() -> None:
    check = policy(allowed_hosts=("*.example.com", "example.com", "localhost:3000"), blocked_hosts=("bad.example.com",))
    assert check("https://example.com/") is None
    assert check("https://a.b.example.com/") is None
    assert check("https://A.EXAMPLE.com./") is None
    assert check("http://localhost:3000/") is None
    assert check("http://localhost:3001/") == "localhost is not in browser.allowed_hosts."
    assert check("https://bad.example.com/") == "bad.example.com is in browser.blocked_hosts."
    assert check("https://example.com.evil.test/") is not None
    assert check("https://notexample.com/") is not None
    assert check("https://example.com@evil.test/") is not None


def test_loopback_by_name_and_number() -> None:
    assert is_loopback_host("127.0.0.1")
    assert is_loopback_host("::1")
    assert is_loopback_host("localhost")
    assert not is_loopback_host("0.0.0.0")
    assert not is_loopback_host("localhost.example.com")
