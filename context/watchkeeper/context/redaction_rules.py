"""What secrets look like: data for `redact`.

Each form is (kind, needles, expression). An expression begins where a needle stands, has no unbounded repetition inside
another, and never matches its own replacement. Sources: the token formats that the issuers publish.
"""

from __future__ import annotations

import re

_Form = tuple[str, tuple[str, ...], str]

TOKEN_FORMS: tuple[_Form, ...] = (
    (
        "private-key",
        ("-----BEGIN ",),
        r"-----BEGIN (?P<k>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
        r"(?:(?!-----BEGIN )[\s\S])*?(?:-----END (?P=k)-----|\Z)",
    ),
    ("private-key", ("PuTTY-User-Key-File",), r"PuTTY-User-Key-File-\d:[\s\S]*?(?:Private-MAC: ?[0-9a-f]+|\Z)"),
    ("private-key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    ("jwt", ("eyJ",), r"eyJ[\w-]{8,1000}\.[\w-]{8,}\.[\w-]*(?:\.[\w-]+){0,2}"),
    ("api-key", ("sk-",), r"sk-(?=[\w-]{0,100}?\d)(?:proj-|ant-|or-|svcacct-|admin-)?[\w-]{16,}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github-token", ("github_pat_",), r"github_pat_\w{20,}"),
    ("gitlab-token", ("gl",), r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[\w.-]{16,}"),
    ("slack-token", ("xox", "xapp-", "xwfp-"), r"x(?:ox[a-z](?:\.xox[a-z])?|app|wfp)-[A-Za-z0-9-]{10,}"),
    ("webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{8,}"),
    ("webhook", ("discord.com/api/", "discordapp.com/api/"), r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"),
    ("webhook", ("webhook.office.com/",), r"webhook\.office\.com/webhookb2/[\w@/-]{20,}"),
    ("aws-key-id", ("AKIA", "ASIA", "ABIA", "ACCA"), r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}(?![A-Z0-9])"),
    ("google-key", ("AIza", "GOCSPX-", "ya29.", "1//0"), r"(?:AIza|GOCSPX-|ya29\.|1//0)[\w-]{20,}"),
    ("stripe-key", ("sk_", "pk_", "rk_"), r"[spr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("webhook-secret", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,}"),
    (
        "package-token",
        ("npm_", "pypi-", "rubygems_"),
        r"(?:npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|rubygems_[0-9a-f]{40,})",
    ),
    ("package-token", ("cio",), r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    (
        "model-host-token",
        ("hf_", "gsk_", "xai-", "pplx-", "r8_", "nvapi-", "api_org_"),
        r"(?:hf_|gsk_|xai-|pplx-|r8_|nvapi-|api_org_)(?=[\w-]{0,100}?\d)[\w-]{20,}",
    ),
    (
        "mail-key",
        ("SG.", "key-", "xkeysib-"),
        r"(?:SG\.[\w-]{16,}\.[\w-]{16,}|key-[0-9a-f]{32}|xkeysib-[0-9a-f]{40,}-\w{10,})",
    ),
    ("twilio-key", ("SK", "AC"), r"(?:SK|AC)[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("cloud-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[por]_v1_[0-9a-f]{40,}"),
    ("cloud-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("cloud-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{20,}"),
    ("cloud-token", ("dp.",), r"dp\.(?:pt|st|sa|ct|scim|audit)\.[\w.-]{20,}"),
    ("cloud-token", ("FlyV1",), r"FlyV1 fm\d_[\w+/=,-]{20,}"),
    ("cloud-token", ("dapi",), r"dapi[0-9a-f]{32}"),
    (
        "cloud-token",
        ("pscale_", "glc_", "glsa_"),
        r"(?:pscale_(?:tkn|pw|oauth)_[\w.-]{20,}|glc_[\w+/=]{20,}|glsa_\w{20,})",
    ),
    ("cloud-token", ("HRKU-", "dckr_", "sbp_"), r"(?:HRKU-[\w-]{20,}|dckr_(?:pat|oat)_[\w-]{20,}|sbp_[0-9a-f]{40})"),
    (
        "cloud-token",
        ("ATATT3", "ATCTT3", "pul-", "tskey-"),
        r"(?:AT[AC]TT3[\w=-]{20,}|pul-[0-9a-f]{40}|tskey-[a-z]+-[\w-]{16,})",
    ),
    (
        "app-token",
        ("lin_api_", "ntn_", "secret_", "figd_"),
        r"(?:lin_api_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}|figd_[\w-]{20,})",
    ),
    ("app-token", ("sq0", "EAAA"), r"(?:sq0(?:atp|csp)-[\w-]{20,}|EAAA[\w-]{50,})"),
    ("app-token", ("NRAK-", "PMAK-", "sntrys_", "sntryu_"), r"(?:NRAK-|PMAK-|sntry[su]_)[\w+/=-]{20,}"),
    ("app-token", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{60,}"),
    ("app-token", ("ops_ey",), r"ops_ey[\w+/=-]{40,}"),
)

# The name of a secret, without what may stand before it (`DB_`, `my`, `x-`): that stays as it is.
_PASSWORD = r"""pass(?:word|wd|phrase|code)s?|(?<=_)pass|(?<=["'])pass(?=["'])|pwd"""
_KEY_OF = r"(?:api|access|account|private|signing|encryption|master|auth|service|shared|storage|secret)"
_SECRET = (
    r"secret(?:[_-]?(?:access[_-]?)?key|[_-]?token|[_-]?value)?s?|tokens?|credentials?|_auth(?:token)?|authtoken"
    rf"|{_KEY_OF}[_-]?keys?"
)
_KEY_NEEDLES = [
    f"{of}{joint}key" for of in _KEY_OF.strip("(?:)").split("|") if of != "secret" for joint in ("", "_", "-")
]
_SECRET_NEEDLES = ("pass", "pwd", "secret", "token", "credential", "_auth", "authtoken", *_KEY_NEEDLES)

SECRET_NAMES = re.compile(
    rf"(?:{_PASSWORD}|(?<!max)(?<!max_)(?:{_SECRET})|authorization|cookie|x-amz-signature)\Z",
    re.IGNORECASE,
)

REFERENCE = re.compile(
    r"""(?x)
    \\?["'`]? (?:
        \[redacted | [$%{<*(] | \.\.\. | x{3,}\b | your[-_ ] | (?:\*|•)+
      | (?:none|null|nil|true|false|undefined|str|string|bytes|int|number|bool|boolean|any|optional|required
          |password|secret|token)\b
      | (?:process|os|env|self|this|config|settings|args|opts|options|request|req|import|secrets|vars|ctx|cfg|await
          |new|input|data)[.\[(\s]
    )
    """,
    re.IGNORECASE,
)

_QUERY_NAMES = (
    r"x-(?:amz|goog|oss|cos)-(?:signature|credential|security-token)|awsaccesskeyid|googleaccessid|signature|sig|key-pair-id"
    r"|policy|hmac|hdnea|__token__|token|auth|(?:auth|access|refresh|id|session)[_-]?token|api[_-]?key|client[_-]?secret|secret"
    r"|password|passwd|pwd|code|assertion|jwt|session(?:_?id)?|sid|invite"
)

VALUE_FORMS: tuple[_Form, ...] = (
    (
        "authorization",
        ("authorization",),
        r"""(?P<keep>authorization\\?["']?\s{0,4}[:=]\s{0,4}\\?["'`]?(?:(?:bearer|basic|token|digest|apikey|negotiate|bot|key"""
        r"""|aws4-hmac-sha256|sapisidhash)\s{1,4})?+)(?!\[redacted|[$%{<(]|(?:bearer|basic|token|none|null|undefined)\b)"""
        r"""[^\s"'`\\,;]{6,}(?:, ?\w+=[^\s"'`\\,;]+)*""",
    ),
    ("authorization", ("bearer ",), r"(?P<keep>(?<![a-z])bearer )(?!\[redacted)(?=[\w.~+/-]*\d)[\w.~+/-]{12,}=*"),
    (
        "cookies",
        ("cookie",),
        r"""(?P<name>cookie\\?["']?\s{0,4}[:=]\s{0,4}\\?["'`]?)(?P<value>[^\s=;"'`\\,()]{1,200}=[^\r\n"'`\\]*)""",
    ),
    (
        "password",
        ("curl ", "wget "),
        r"""(?P<keep>(?:curl|wget) (?:[^\n]{0,400}? )?(?:-u|--user|--proxy-user)[ =]?\\?["']?[^\s:"'\\]{1,200}:)"""
        r"""(?!\[redacted|[$%{<])[^\s"'\\]+""",
    ),
    (
        "password",
        ("--",),
        r"""(?P<keep>--[a-z-]{0,20}(?:password|passwd|passphrase|pass|token|secret|api-?key|auth-?key)[ =]\\?["']?)"""
        r"""(?!\[redacted|[$%{<*-]|your)(?=[^\s"'\\]*[\d!@#%^*+])[^\s"'\\]{4,}""",
    ),
    ("password", ("sshpass -p",), r"""(?P<keep>sshpass -p ?\\?["']?)(?!\[redacted|[$%{<])[^\s"'\\]+"""),
    (
        "password",
        ("://",),
        r"""(?P<keep>://(?!\[redacted)[^\s/:@"'<>`]{0,200}:)(?!\[redacted|[$%{<*]|\.\.\.)[^\s/@"'<>`]{1,500}(?=@)""",
    ),
    ("token", ("://",), r"""(?P<keep>://)(?!\[redacted)(?=[^\s/:@"'<>`]*\d)[^\s/:@"'<>`]{20,500}(?=@)"""),
    (
        "signature",
        ("?", "&"),
        rf"""(?P<keep>[?&](?:amp;)?(?:{_QUERY_NAMES})=)(?!\[redacted|[$%{{<][A-Za-z{{(])[^\s&#"'<>`\\)\]]{{6,}}""",
    ),
    ("bot-token", (":aa",), r"(?P<keep>:)(?<=\d{8}:)AA[\w-]{30,}"),
    (
        "bot-token",
        (".",),
        r"(?P<keep>\.)(?-i:(?<=[A-Za-z0-9_-]{23}\.)[A-Za-z0-9_-]{6}\.(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{27,}(?![\w.-]))",
    ),
    (
        "named",
        _SECRET_NEEDLES,
        rf"""(?P<name>{_PASSWORD}|{_SECRET})(?P<between>\\?["'`]?\]?\s{{0,4}}(?:=>|:?=|:)\s{{0,4}}(?:(?<=[=:\s])[bru])?)"""
        r"""(?:(?P<quote>\\?["'`])(?P<value>(?:(?!(?P=quote))[^\r\n]){4,2000})(?P=quote))""",
    ),
    (
        "named",
        _SECRET_NEEDLES,
        rf"""(?P<name>{_PASSWORD}|{_SECRET})(?P<between>[ \t]{{0,4}}(?:=[ \t]{{0,4}}|:[ \t]{{1,4}}|[ \t]is[ \t]))"""
        r"""(?P<quote>(?!.)x)?(?P<value>[^\s"'`;,&(){}<>\[\]\\|]{4,2000})(?![\w("'`\[.{])""",
    ),
)
