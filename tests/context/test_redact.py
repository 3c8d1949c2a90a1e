"""What is taken out of text that leaves the machine, and what is left in.

The tokens are put together here so that no scanner takes this file for a leak.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.context.redact import redact, redact_value

A = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5"
HEX = "0123456789abcdef" * 4
UP = "QWERTY23QWERTY23"

TOKENS = [
    "sk-" + A[:40],
    "sk-" + "proj-" + A[:48],
    "sk-" + "ant-api03-" + A[:60],
    "sk-" + "or-v1-" + HEX,
    *(f"gh{kind}_" + A[:36] for kind in "pousr"),
    "github_" + "pat_" + A[:22] + "_" + A[:50],
    "glp" + "at-" + A[:20],
    "xox" + "b-123456789012-123456789012-" + A[:24],
    "xap" + "p-1-A012-123-" + HEX,
    "AK" + "IA" + UP,
    "AS" + "IA" + UP,
    "AI" + "za" + A[:35],
    "ya" + "29." + A[:50],
    "GOC" + "SPX-" + A[:28],
    "sk_" + "live_" + A[:24],
    "rk_" + "test_" + A[:24],
    "whs" + "ec_" + A[:32],
    "npm" + "_" + A[:36],
    "pyp" + "i-AgEIcHlwaS5vcmc" + A[:60],
    "hf" + "_" + A[:34],
    "gsk" + "_" + A[:50],
    "SG" + "." + A[:22] + "." + A[:43],
    "SK" + HEX[:32],
    "dop" + "_v1_" + HEX,
    "shp" + "at_" + HEX[:32],
    "hv" + "s." + A[:30],
    "dap" + "i" + HEX[:32],
    "lin_" + "api_" + A[:40],
    "sq0" + "atp-" + A[:22],
    "12345678" + ":AA" + A[:33],
    "M" + A[:23] + "." + A[:6] + "." + A[:30],
    "ATA" + "TT3" + A[:50],
    "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxMjM0In0." + A[:43],
    "AGE-SECRET-" + "KEY-1" + "QPZRY9X8" * 7,
    "hooks.slack" + ".com/services/T0/B0/" + A[:24],
]

# (text, the secret in it)
NAMED = [
    ('password = "hunter2"', "hunter2"),
    ("export DB_PASSWORD=s3cr3t!pw", "s3cr3t!pw"),
    ("DB_PASS=abc123", "abc123"),
    ("the password is hunter22, use it", "hunter22"),
    ('{"password": "correct horse battery"}', "correct horse battery"),
    ('{\\"apiKey\\": \\"abcd1234efgh\\"}', "abcd1234efgh"),
    ("aws_secret_access_key = " + A[:40], A[:40]),
    ("client_secret: " + A[:20], A[:20]),
    ("secretAccessKey='" + A[:40] + "'", A[:40]),
    ("//registry.example/:_authToken=" + HEX[:36], HEX[:36]),
    ("Authorization: Bearer " + A[:30], A[:30]),
    ("-H 'Authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
    ('{"Authorization": "token ' + A[:20] + '"}', A[:20]),
    ("Proxy-Authorization: Digest username=abc123, response=def456", "def456"),
    ("Cookie: sid=s%3Aabc.def; theme=dark", "s%3Aabc.def"),
    ("Set-Cookie: __Host-s=abcdef; Path=/; HttpOnly", "abcdef"),
    ('"cookie": "a=first1; b=second2"', "second2"),
    ("x-api-key: " + A[:20], A[:20]),
    ("curl -s -u admin:pa55word https://a.example", "pa55word"),
    ("mysql --password=pa55word db", "pa55word"),
    ("deploy --api-key abc123def --yes", "abc123def"),
    ("postgres://app:p%40ss@db.example:5432/x", "p%40ss"),
    ("redis://:" + A[:12] + "@cache:6379/0", A[:12]),
    ("mongodb+srv://u:pw123@c.example/?retry=1", "pw123"),
    ("https://" + A[:40] + "@git.example/r.git", A[:40]),
    ("Server=db;User Id=sa;Password=Sup3r;Encrypt=yes", "Sup3r"),
    ("AccountName=x;AccountKey=" + A[:40] + "==;", A[:40]),
    ("https://b.s3.example/k?X-Amz-Credential=AK%2Fus&X-Amz-Signature=" + HEX, HEX),
    ("https://a.blob.example/c?sv=2024&sig=abc%2Bdef%3D&se=1", "abc%2Bdef%3D"),
    ("https://a.example/cb?code=abcdef123&n=2", "abcdef123"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz (cut off", "b3BlbnNz"),
    ("İstanbul: пароль password='тайна123'", "тайна123"),
]

HARMLESS = [
    "token = get_token()",
    "password: str = Field(min_length=8)",
    'api_key=os.environ["API_KEY"]',
    "apiKey: process.env.OPENAI_API_KEY",
    "PASSWORD=${DB_PASSWORD}",
    "Authorization: Bearer $TOKEN",
    '"max_tokens": 4096, "prompt_tokens": 51234',
    "used 12,345 tokens = 3 % of the budget",
    'session_id: "2026-01-12-test-session-1"',
    '"pwd": "/home/dev/project-1"',
    "if token == expected:",
    "--- PASS: TestThing1 (0.00s)",
    "sk-learn and sk-toggleable-container are words",
    "commit 6cb5a6e8989d8b5adb1c49ce68976769083d8b3d",
    "uuid fdd24234-3c2a-4958-91ed-59c63b12ba1e",
    "https://a.example/p?id=12345678&page=2#x",
    "the cookie jar is empty; see cookies.py",
    "git@github.com:org/repo.git and mailto:me@example.org",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "http://localhost:8080/a@b",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "see {} there", '"{}"', "K={}\n", "({})", "https://x.example/?a={}&b=1", "ключ:{}。"]
)
def test_a_token_is_known_by_its_shape_wherever_it_stands(token, around):
    text = around.format(token)
    redacted = redact(text)
    assert token not in redacted
    assert token[-12:] not in redacted
    assert "[redacted:" in redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_a_value_is_known_by_the_name_before_it_and_the_name_stays(text, secret):
    redacted = redact(text)
    assert secret not in redacted
    assert redacted[:3] == text[:3] or "PRIVATE KEY" in text
    assert redact(redacted) == redacted


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(text):
    assert redact(text) == text


def test_what_stands_around_a_secret_stays():
    assert redact("Set-Cookie: sid=abc; Path=/; HttpOnly") == "Set-Cookie: sid=[redacted:cookie]; Path=/; HttpOnly"
    assert redact("postgres://app:pw1@db/x?sslmode=on") == "postgres://app:[redacted:password]@db/x?sslmode=on"


def test_json_stays_json_and_values_under_a_telling_key_go_whole():
    value = {"env": {"DB_PASSWORD": "plain", "max_tokens": 5, "HOME": "/h"}, "list": ["Bearer " + A[:20], None]}
    redacted = redact_value(value)
    assert redacted["env"] == {"DB_PASSWORD": "[redacted:value]", "max_tokens": 5, "HOME": "/h"}
    assert A[:20] not in redacted["list"][0]
    assert value["env"]["DB_PASSWORD"] == "plain"
    assert json.loads(redact(json.dumps({"token": A[:30], "n": [1]}))) == {"token": "[redacted:value]", "n": [1]}


_pieces = st.sampled_from(
    [*TOKENS, *(t for t, _ in NAMED), *HARMLESS, '"', "'", "\\", "=", ": ", "[redacted:x]", "\n", "İ"]
)


@given(st.lists(_pieces | st.text(max_size=8), max_size=8).map("".join))
def test_redacting_twice_is_redacting_once(text):
    once = redact(text)
    assert redact(once) == once
