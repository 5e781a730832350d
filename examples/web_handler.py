"""A web handler for a bundle that par-run serves (docs/serving.md):

    par-run model.par --serve par.sock &
    python web_handler.py par.sock 8080 &
    curl localhost:8080 -d '{"inputs": {"x": [[0.1, 0.2]]}}'
"""
import http.server
import socket
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).replace(b"\n", b" ")
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(sys.argv[1])
                server.sendall(body)
                server.shutdown(socket.SHUT_WR)  # the end of the request
                answer, status = server.makefile("rb").read(), 200
            if b'"outputs":' not in answer[:2000]:
                status = 400  # with the reason in the answer
        except OSError as error:
            answer, status = f'{{"error": {{"message": "no server: {error.strerror}"}}}}\n'.encode(), 503
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    web = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(f"http://127.0.0.1:{web.server_address[1]}", flush=True)
    web.serve_forever()
