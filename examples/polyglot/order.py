#!/usr/bin/env python3
"""The steps of an order, in Python, with only the standard library.

Perdure sends each step as a signed request and stores what is answered before
the order continues. This program may be stopped, killed or started several times:
an order continues where it was.

It prints the address that it listens on. Its secret is in ORDER_SECRETS: one, or
two with a space between them while it is being replaced.
"""

import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = [base64.b64decode(text[len("whsec_"):]) for text in os.environ["ORDER_SECRETS"].split()]
TOLERANCE = 5 * 60  # seconds that clocks may differ
LARGEST = 8 << 20  # bytes of a request

# --- the order ---------------------------------------------------------------

STEPS = {}


def step(function):
    """Makes a function the step of its name."""
    STEPS[function.__name__] = function
    return function


@step
def charge(order):
    """Asks for the money. The first attempt fails, and is tried again."""
    if order["attempt"] == 1:
        return {"outcome": "fail", "reason": "the payment provider does not answer"}
    state = dict(order["state"], charged_after=order["attempt"])
    return {"outcome": "await", "signals": ["paid"], "timeout": "24h", "step": "pack", "state": state}


@step
def pack(order):
    """Packs every item on its own, side by side."""
    if order["timed_out"]:
        return {"outcome": "stop", "reason": "the order was not paid"}
    state = dict(order["state"], paid=order["awaited"][0]["payload"]["amount"])
    parcels = [{"definition": "parcel", "state": {"item": item}} for item in state["items"]]
    return {"outcome": "spawn", "children": parcels, "step": "close", "state": state}


@step
def close(order):
    """Ends the order with what was packed."""
    packed = [child["result"] for child in order["children"] if child["status"] == "done"]
    return {"outcome": "done", "result": {"paid": order["state"]["paid"], "packed": packed, "attempts": order["state"]["charged_after"]}}


@step
def wrap(parcel):
    return {"outcome": "done", "result": parcel["state"]["item"].upper()}


# --- Standard Webhooks -------------------------------------------------------


def sign(secret, message, timestamp, body):
    content = f"{message}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode()


def genuine(headers, body):
    """Reports whether a request was signed recently with one of the secrets."""
    message, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    given = headers.get("webhook-signature", "").split(" ")
    wanted = [sign(secret, message, timestamp, body) for secret in SECRETS]
    return any(hmac.compare_digest(g.encode(), w.encode()) for g in given for w in wanted)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST:
            return self.refuse(413)
        body = self.rfile.read(length)
        if not genuine(self.headers, body):
            return self.refuse(401)
        context = json.loads(body)["data"]
        if context["step"] not in STEPS:
            return self.refuse(404)
        self.answer(STEPS[context["step"]](context))

    def answer(self, outcome):
        """Signs the answer with the id of the request."""
        body = json.dumps(outcome).encode()
        message, timestamp = self.headers["webhook-id"], str(int(time.time()))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("webhook-id", message)
        self.send_header("webhook-timestamp", timestamp)
        self.send_header("webhook-signature", " ".join(sign(s, message, timestamp, body) for s in SECRETS))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status):
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Endpoint)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
