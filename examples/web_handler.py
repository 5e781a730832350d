"""A web handler for a bundle that par-run serves (docs/serving.md):

    par-run model.par --serve par.sock &
    python web_handler.py par.sock 8080 &
    curl localhost:8080 -d '{"inputs": {"x": [[0.1, 0.2]]}}'

A decoder's tokens are handed on as they come:

    curl -N localhost:8080 -d '{"prompts": [[464, 3290]], "max_new_tokens": 8, "stream": true}'
"""
import http.server
import json
import socket
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # which has chunks

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).replace(b"\n", b" ")
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(sys.argv[1])
                server.sendall(body)
                server.shutdown(socket.SHUT_WR)  # the end of the request
                lines = server.makefile("rb")
                first = lines.readline()
                if b'"token":' in first:
                    return self.stream(first, lines)
                answer = first + lines.read()
            status = 400 if not first or "error" in json.loads(first) else 200  # with the reason in the answer
        except OSError as error:
            answer, status = f'{{"error": {{"message": "no server: {error.strerror}"}}}}\n'.encode(), 503
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def stream(self, line, lines):
        """A chunk for each line, as it comes. A client that has gone ends the request at the server, too."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while line:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                line = lines.readline()
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True


if __name__ == "__main__":
    web = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(f"http://127.0.0.1:{web.server_address[1]}", flush=True)
    web.serve_forever()
