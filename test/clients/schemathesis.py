"""Information that the document cannot give schemathesis: values for Berth's own formats, and correct responses."""

import base64
import json
import os
import re

import schemathesis
from hypothesis import strategies as st

# The public half of the key in use: revoking it would end the run's access.
OWN_KEY = json.loads(base64.urlsafe_b64decode(os.environ["BERTH_KEY"].split(".")[1] + "=="))["scopedKeyKey"]

LABEL = st.from_regex(r"[a-z][a-z0-9]{3,20}", fullmatch=True)
CID = st.binary(min_size=32, max_size=32).map(
    lambda digest: "b" + base64.b32encode(b"\x01\x55\x12\x20" + digest).decode().rstrip("=").lower()
)
PEER = "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
PAIRS = st.dictionaries(LABEL, st.text(st.characters(codec="ascii", min_codepoint=32), max_size=20), max_size=3)
GROUP = "0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15"
# Nothing listens there, so no third-party server is contacted.
REPOSITORY = "https://127.0.0.1:9/"

FORMATS = {
    "cid": CID,
    "cids": st.lists(CID, min_size=1, max_size=3).map(",".join),
    "page-token": st.uuids().map(lambda one: base64.b64encode(str(one).encode()).decode()),
    "cursor": st.just(""),
    "host-node": st.sampled_from([PEER, "/ip4/127.0.0.1/tcp/9/p2p/" + PEER]),
    "gateway-name": LABEL,
    "subdomain": LABEL,
    "domain-name": LABEL.map(lambda label: label + ".example.com"),
    "private-file": CID.map(lambda cid: "https://catalogues.gateway.localhost/files/" + cid),
    "json-pairs": PAIRS.map(json.dumps),
    "json-metadata": PAIRS.map(lambda pairs: json.dumps({"name": "Named", "keyvalues": pairs})),
    "json-options": st.sampled_from([json.dumps({"cidVersion": 1}), json.dumps({"groupId": GROUP})]),
    "unix-time": st.integers(4_000_000_000, 99_999_999_999).map(str),
    "preference": st.sampled_from(["wait=0", "respond-async", "return=minimal"]),
    "skill": st.one_of(CID, LABEL.map(lambda name: "@nobody/" + name)),
    "git-url": LABEL.map(lambda name: REPOSITORY + name + ".git"),
    "git-ref": LABEL,
    # No name exists below it (RFC 6761).
    "webhook-url": LABEL.map(lambda name: "https://" + name + ".invalid/hook"),
    "folder": st.lists(LABEL, max_size=3).map("/".join),
    "file-name": LABEL.map(lambda name: name + ".txt"),
    "base64": st.binary(max_size=64).map(lambda data: base64.b64encode(data).decode()),
    "egress-rule": LABEL.map(lambda label: label + ".example.com"),
    "egress-path": LABEL.map(lambda name: "/" + name),
    "secret-host": LABEL.map(lambda label: label + ".example.com"),
    "path-prefix": LABEL.map(lambda name: "/" + name),
    "time-zone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    "agent-name": LABEL,
    "skill-id": st.one_of(st.uuids().map(str), CID),
    "sender": st.from_regex(r"[1-9][0-9]{5,10}", fullmatch=True),
    "json-object": PAIRS.map(json.dumps),
}
for name, values in FORMATS.items():
    schemathesis.openapi.format(name, values)


@schemathesis.serializer(
    "application/offset+octet-stream",
    "application/x-git-upload-pack-request",
    "application/x-git-receive-pack-request",
)
def send_bytes(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Keeps requests from waiting, and the key from being revoked."""
    if isinstance(case.query, dict) and str(case.query.get("wait", "")).isdigit():
        case.query["wait"] = "0"
    if re.fullmatch(r"(?!.*respond-async).*(wait=\d+)?.*", str(case.headers.get("Prefer", "")), re.S):
        case.headers["Prefer"] = "wait=0"
    if (case.path_parameters or {}).get("key") == OWN_KEY:
        case.path_parameters["key"] = "0" * 20


# Requests that the document allows but a route refuses, because the rule depends on several values, on the time, or on
# existing resources, which JSON Schema cannot express. Path of the operation, message, reason.
REFUSED = [
    (r"", r"^Idempotency-Key: already used with another request$", "an earlier request"),
    (r"", r"must not contain NUL( or broken Unicode)?$", "the definition of text, which only the introduction gives"),
    (r"", r"^network: must be public or private$", "an id that schemathesis tries in place of the network in a path"),
    (r"", r"^(cid|snapshotCid): not a CID", "a text from another response that schemathesis tries"),
    (r"^/psa/pins", r"^meta: a key must not be empty$", "field names"),
    (r"^/v3/files", r"is over already: date and expires are in the past$", "two fields and the time"),
    (r"^/v3/files", r"must be in the future$", "the time"),
    (r"^/v3/files", r"sort: says the opposite of order$", "two parameters"),
    (r"^/v3/files$", r"car: only on the public network$", "two fields"),
    (r"^/v3/files$", r"^file: Not a valid CAR", "the bytes of a file"),
    (r"^/v3/files/sign$", r"^method: must be GET$", "two fields"),
    (r"/swap/", r"swap_cid: is the CID itself$|swapCid: says another CID than swap_cid$", "two values"),
    (r"^/v3/pinata/keys$", r"permissions: must grant something$", "all switches together"),
    (r"^/(v3/files|pinning/pinFileToIPFS)$", r"file: each of several files needs a file name$", "part names"),
    (r"^/(v3/files|pinning/pinFileToIPFS)$", r": comes twice$", "names of unknown form parts"),
    (r"^/pinning/pinFileToIPFS$", r"^network: this key or URL is for the (public|private) network$", "a part and a parameter"),
    (r"^/pinning/pinJSONToIPFS$", r"^pinataContent: is required$", "several fields"),
    (r"^/v3/gateways", r"domain: must be a domain name of", "an example from another route with a field of this name"),
    (r"^/v3/gateways", r"plugin_id: there is no such plugin$", "the id of another created resource"),
    (r"^/v0/admin/workspaces", r"^plan: no plan is named ", "the existing plans"),
    (r"/invitations$", r"^email: must be an e-mail address$", "a text of the maximum length, which has no format"),
    (r"^/v0/clawhub$", r"cursor: not one of this list$", "cursors that a list returned"),
    (r"^/v0/(.*/)?spending$", r"^from: must (not be after|be at most 366 days before) to$", "two parameters"),
    (r"^/v0/(templates|files/.*/entries|spending|model/prices|agents/.*/(spending|egress/hosts))$", r"pageToken: not a token of this API$", "tokens that a list returned"),
    (r"^/v0/secrets", r"^via: needs hosts$|^value: must have 8 to 8192 printable ASCII", "two fields"),
    (r"^/v0/secrets", r"^hosts: ", "the name or the kind of the secret"),
    (r"^/v0/secrets", r"^via\.name: must be a header that", "names of headers, as described"),
    (r"^/v0/templates", r"^(agentId|gitUrl|ref): (cannot|must) be given", "several fields"),
    (r"^/v0/templates", r"^gitUrl: 127\.0\.0\.1:9 is not on the public internet$", "the allowed git servers"),
    (r"^/v0/skills", r"^skillCid: (it is not a folder of files|its content)|^fileId: is not a file", "the content of a CID"),
    (r"^/v0/agents/.*/skills/", r"cannot be given beside skillCid$", "two fields"),
    (r"^/v0/(agents/.*/)?egress$", r": must have methods or paths of a name;", "two fields"),
    (r"^/v0/agents/.*/channels/", r"^(bot|app)Token\b", "the channel of the path"),
    (r"^/v0/agents/.*/(restart|update)$", r"^Invalid version$", "the available versions"),
    (r"^/v0/agents/.*/tasks", r"\btext and message are two names of the same$", "two fields"),
    (r"^/v0/agents/.*/domains", r"^An agent can have at most \d+ ", "the domains that the agent has"),
    (r"^/v0/agents", r"(is|are) reserved$|must not contain \"", "names and ports reserved by Berth, as described"),
    (r"^/(v0/agents|v3/files)", r"must (not be empty|have a text)$", "only blanks, which are trimmed"),
]
# 5xx responses that are correct here.
UNAVAILABLE = [
    (r"^/v0/agents/", r"^The agent is not running$", "the agents are only rows, without containers"),
    (r"^/v0/templates", r"^gitUrl: git\.example:443 cannot be", "a repository from an example, which does not exist"),
    (r"^/v0/templates", r"^gitUrl: 127\.0\.0\.1:9 ", "nothing listens there"),
]


def is_of_another_path(case, method):
    """Whether another path that also matches this one has the method and therefore responds."""
    path = case.operation.path
    for other, operations in case.operation.schema.raw_schema["paths"].items():
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(other))
        if other != path and method.lower() in operations and re.fullmatch(pattern, path):
            return True
    return False


@schemathesis.hook
def filter_failure(ctx, failure, case, response):
    path = case.operation.path
    if "undeclared method" in failure.title and is_of_another_path(case, response.request.method):
        return False
    # OpenAPI cannot forbid other query parameters.
    if "in query - violates `additionalProperties`" in failure.message:
        return False
    # DELETE cancels an operation, which can still be read.
    if path == "/v0/operations/{id}" and "Deleted resource" in failure.title:
        return False
    try:
        error = json.loads(response.content).get("error", "")
    except (ValueError, AttributeError):
        return True
    text = error if isinstance(error, str) else error.get("details", "")
    texts = [text, *response.headers.get("error-detail", [])]
    known = {"Schema-valid request rejected": REFUSED, "Server error": UNAVAILABLE}.get(failure.title, [])
    return not any(re.search(place, path) and re.search(message, text) for text in texts for place, message, _ in known)
