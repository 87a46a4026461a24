"""A slow service: 30 ms for every answer, however many clients ask at once.

python service.py        # prints the port that it listens on
"""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

SECONDS = 0.03
CITIES = ("Lyon", "Turin", "Porto", "Ghent", "Graz", "Malmö")


class Handler(BaseHTTPRequestHandler):
    """Answers `GET /city?customer=17` with the city of a customer."""

    protocol_version = "HTTP/1.1"  # Connections stay open from one request to the next.
    wbufsize = -1  # One packet for head and body, or the two would wait for each other.

    def do_GET(self) -> None:
        """Think, then answer."""
        customer = int(parse_qs(urlsplit(self.path).query)["customer"][0])
        time.sleep(SECONDS)
        body = json.dumps({"city": CITIES[customer % len(CITIES)]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing about requests."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        print(server.server_port, flush=True)
        server.serve_forever()
