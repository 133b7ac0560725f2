"""Serves a language model with random weights, batching requests continuously, with the metrics of vLLM.

    python examples/llm/server.py --port 8000 --load 64:512:256 --seconds 60
    sweetspot measure --metrics http://127.0.0.1:8000/metrics --attach PID --duration 20s
    sweetspot hold --below 400W --knob batch -- python examples/llm/server.py --load 256:512:256 --seconds 60

The weights say nothing, but cost what real ones cost: a decoder with grouped key-value heads, its cache, prefill and
decode. Requests come over POST /v1/completions (OpenAI's form, streamed), or from the built-in load
CLIENTS:PROMPT:OUTPUT, whose clients send the next request when the last one is answered. Sweetspot sets the largest
number of requests that run together over the link; the lines for it are marked.
"""
import argparse
import collections
import http.server
import json
import os
import queue
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/src"))
import sweetspot  # for hold: with the wheel installed the line above is needless

try:
    import torch
    import torch.nn.functional as functional
except ImportError as error:
    sys.exit("server.py: %s; it needs PyTorch: pip install torch" % error)

TTFT = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0]
ITL = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0]
E2E = [0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0]


class Model:
    """A decoder with random weights, and a cache of keys and values with a place for each request."""

    def __init__(self, layers, width, inner, heads, shared, places, context, device):
        self.device, self.kind = device, torch.bfloat16 if device == "cuda" else torch.float32
        self.heads, self.shared, self.depth = heads, shared, width // heads
        self.context = context
        random = lambda *shape: torch.randn(*shape, device=device, dtype=self.kind) * 0.02
        self.layers = [dict(qkv=random(width, (heads + 2 * shared) * self.depth), out=random(width, width),
                            up=random(width, 2 * inner), down=random(inner, width)) for _ in range(layers)]
        self.head, self.embedding = random(width, 32000), random(32000, width)
        self.keys, self.values = (torch.zeros(layers, places, shared, context, self.depth, device=device, dtype=self.kind)
                                  for _ in range(2))
        self.tokens = torch.zeros(places, dtype=torch.long, device=device)
        self.lengths = torch.zeros(places, dtype=torch.long, device=device)
        self.graphs = {}

    def _layer(self, x, weights, attend):
        normal = functional.rms_norm(x, x.shape[-1:])
        q, k, v = (normal @ weights["qkv"]).split(
            [self.heads * self.depth, self.shared * self.depth, self.shared * self.depth], dim=-1)
        x = x + attend(q, k, v) @ weights["out"]
        gate, up = (functional.rms_norm(x, x.shape[-1:]) @ weights["up"]).chunk(2, dim=-1)
        return x + (functional.silu(gate) * up) @ weights["down"]

    def prefill(self, place, count):
        """Processes a prompt of so many tokens, and returns when its first token is there."""
        x = self.embedding[torch.randint(0, 32000, (count,), device=self.device)]
        group = self.heads // self.shared
        for number, weights in enumerate(self.layers):
            def attend(q, k, v):
                q = q.view(count, self.heads, self.depth).transpose(0, 1)
                k, v = (one.view(count, self.shared, self.depth).transpose(0, 1) for one in (k, v))
                self.keys[number, place, :, :count], self.values[number, place, :, :count] = k, v
                k, v = (one.repeat_interleave(group, 0) for one in (k, v))
                found = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
                return found.transpose(0, 1).reshape(count, -1)
            x = self._layer(x, weights, attend)
        self.tokens[place] = (x[-1] @ self.head).argmax()
        self.lengths[place] = count
        self.tokens[place].item()

    def _decode(self, count, reach):
        tokens, lengths = self.tokens[:count], self.lengths[:count]
        x = self.embedding[tokens]
        rows = torch.arange(count, device=self.device)
        target = rows[:, None], torch.arange(self.shared, device=self.device)[None], lengths[:, None]
        mask = (torch.arange(reach, device=self.device)[None] <= lengths[:, None])[:, None, None]
        for number, weights in enumerate(self.layers):
            def attend(q, k, v):
                # The query heads that share a key head are as several queries of it, so that keys are read once.
                q = q.view(count, self.shared, -1, self.depth)
                self.keys[number].index_put_(target, k.view(count, self.shared, -1))
                self.values[number].index_put_(target, v.view(count, self.shared, -1))
                found = functional.scaled_dot_product_attention(
                    q, self.keys[number, :count, :, :reach], self.values[number, :count, :, :reach], attn_mask=mask)
                return found.reshape(count, -1)
            x = self._layer(x, weights, attend)
        self.tokens[:count] = (x @ self.head).argmax(-1)
        self.lengths[:count] = lengths + 1

    def decode(self, count, longest):
        """One token for each of the first `count` places; sizes are rounded up, and each is kept as a CUDA graph."""
        size = next(size for size in sizes(self.tokens.shape[0]) if size >= count)
        reach = min(-(-(longest + 1) // 256) * 256, self.context)
        before = self.lengths[count:size].clone()
        if self.device == "cuda":
            self._graph(size, reach).replay()
        else:
            self._decode(size, reach)
        # Places that are only there to fill the size stay as they are.
        self.lengths[count:size] = before
        self.tokens[:1].cpu()

    def _graph(self, size, reach):
        if (size, reach) not in self.graphs:
            kept = self.lengths.clone(), self.tokens.clone()
            beside = torch.cuda.Stream()
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):
                self._decode(size, reach)
            torch.cuda.current_stream().wait_stream(beside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._decode(size, reach)
            self.lengths.copy_(kept[0]), self.tokens.copy_(kept[1])
            self.graphs[size, reach] = graph
        return self.graphs[size, reach]

    def move(self, source, target):
        """Moves a request to another place, so that those that run are always the first ones."""
        for cache in (self.keys, self.values):
            cache[:, target] = cache[:, source]
        self.lengths[target], self.tokens[target] = self.lengths[source].clone(), self.tokens[source].clone()


def sizes(most):
    """The batch sizes for which graphs are kept: steps of at most an eighth."""
    size, found = 1, []
    while size < most:
        found.append(size)
        size += max(1, 1 << max(size.bit_length() - 4, 0))
    return found + [most]


class Metrics:
    """What the server did, as vLLM writes it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.prompt = self.generated = self.finished = self.running = self.waiting = 0
        self.times = {name: [[0] * (len(bounds) + 1), 0.0, bounds] for name, bounds in
                      (("time_to_first_token_seconds", TTFT), ("inter_token_latency_seconds", ITL),
                       ("e2e_request_latency_seconds", E2E))}

    def observe(self, name, value, count=1):
        buckets, _, bounds = self.times[name]
        at = next((at for at, bound in enumerate(bounds) if value <= bound), len(bounds))
        buckets[at] += count
        self.times[name][1] += value * count

    def page(self):
        label = '{engine="0",model_name="random"}'
        with self.lock:
            lines = ["vllm:%s%s %s" % (name, label, value) for name, value in (
                ("num_requests_running", self.running), ("num_requests_waiting", self.waiting),
                ("prompt_tokens_total", self.prompt), ("generation_tokens_total", self.generated),
                ("request_success_total", self.finished))]
            for name, (buckets, total, bounds) in self.times.items():
                below = 0
                for bound, count in zip(list(bounds) + ["+Inf"], buckets):
                    below += count
                    lines.append('vllm:%s_bucket{engine="0",le="%s",model_name="random"} %d' % (name, bound, below))
                lines += ["vllm:%s_count%s %d" % (name, label, below), "vllm:%s_sum%s %r" % (name, label, total)]
        return "\n".join(lines) + "\n"


class Request:
    """A request with the queue to which its tokens go; the built-in load has none."""

    def __init__(self, prompt, output, answers=None):
        self.prompt, self.output, self.answers = prompt, output, answers
        self.came = self.last = time.perf_counter()
        self.done = 0


class Server:
    """Takes requests into the running batch as soon as there is room, and generates a token for each in every step."""

    def __init__(self, model, most, metrics):
        self.model, self.most, self.metrics = model, most, metrics
        self.incoming, self.waiting, self.running = queue.Queue(), collections.deque(), []
        self.load, self.fixed = (0, 0, 0), None

    def add(self, prompt, output, answers=None):
        room = self.model.context - 1
        prompt = max(1, min(prompt, room - 1))
        self.incoming.put(Request(prompt, max(1, min(output, room - prompt)), answers))

    def set_load(self, clients, prompt, output):
        self.load = (clients, prompt, output)

    def step(self):
        """Prefills at most one request, and generates a token for each running one; returns whether there was work."""
        while not self.incoming.empty():
            self.waiting.append(self.incoming.get())
        clients, prompt, output = self.load
        own = sum(request.answers is None for request in list(self.waiting) + self.running)
        for number in range(clients - own):
            # The first ones are of unlike lengths, so that they do not all end together.
            self.add(prompt, output if self.running else 1 + output * (number + 1) // clients)
        limit = self.fixed or sweetspot.batch_size(default=self.most)  # for hold: ask before each batch
        limit = max(1, min(limit, self.most))
        begun = time.perf_counter()
        if self.waiting and len(self.running) < limit:
            self._start(self.waiting.popleft())
        count = min(len(self.running), limit)
        if count:
            self.model.decode(count, max(request.prompt + request.done for request in self.running[:count]))
            self._tell(count)
            sweetspot.batch(items=count, seconds=time.perf_counter() - begun)  # for hold: a batch is done
        with self.metrics.lock:
            self.metrics.running, self.metrics.waiting = count, len(self.waiting) + len(self.running) - count
        return bool(count)

    def _start(self, request):
        self.model.prefill(len(self.running), request.prompt)
        self.running.append(request)
        now = time.perf_counter()
        with self.metrics.lock:
            self.metrics.prompt += request.prompt
            self.metrics.generated += 1
            self.metrics.observe("time_to_first_token_seconds", now - request.came)
        request.last, request.done = now, 1
        if request.answers:
            request.answers.put(1)

    def _tell(self, count):
        now = time.perf_counter()
        ended = []
        with self.metrics.lock:
            self.metrics.generated += count
            for place, request in enumerate(self.running[:count]):
                self.metrics.observe("inter_token_latency_seconds", now - request.last)
                request.last, request.done = now, request.done + 1
                if request.done >= request.output:
                    ended.append(place)
                    self.metrics.finished += 1
                    self.metrics.observe("e2e_request_latency_seconds", now - request.came)
                if request.answers:
                    request.answers.put(1 if request.done < request.output else None)
        for place in reversed(ended):
            last = len(self.running) - 1
            if place != last:
                self.model.move(last, place)
                self.running[place] = self.running[last]
            self.running.pop()


def answer_http(server, metrics):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _send(self, status, text, kind="text/plain; version=0.0.4"):
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self._send(200, metrics.page()) if self.path == "/metrics" else self._send(404, "no such page\n")

        def do_POST(self):
            try:
                size = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(min(size, 1 << 20)) or b"{}")
                if self.path == "/load":
                    server.fixed = int(body["batch"]) if body.get("batch") else None
                    server.set_load(int(body["clients"]), int(body["prompt"]), int(body["output"]))
                    return self._send(200, "ok\n")
                prompt, output = body.get("prompt", ""), int(body.get("max_tokens", 16))
            except (ValueError, KeyError, TypeError) as error:
                return self._send(400, "bad request: %s\n" % error)
            answers = queue.Queue()
            server.add(max(1, len(prompt) // 4), output, answers)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            piece = lambda text: self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text)) and self.wfile.flush()
            while answers.get(timeout=600):
                piece(b'data: {"choices":[{"index":0,"text":" token"}]}\n\n')
            piece(b'data: {"choices":[{"index":0,"text":" token","finish_reason":"length"}]}\n\n')
            piece(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_):
            pass

    return Handler


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000, help="0 chooses a free one [8000]")
    parser.add_argument("--load", default="0:0:0", help="CLIENTS:PROMPT:OUTPUT, a built-in load [none]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long to serve [until it is ended]")
    parser.add_argument("--most", type=int, default=256, help="the most requests that run together [256]")
    parser.add_argument("--context", type=int, default=2048, help="the most tokens of a request [2048]")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--inner", type=int, default=11008)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--shared", type=int, default=8, help="the heads of keys and values [8]")
    parser.add_argument("--device", default="cuda", help="cuda or cpu [cuda]")
    args = parser.parse_args()
    try:
        load = [int(part) for part in args.load.split(":")]
        if len(load) != 3 or min(load) < 0:
            raise ValueError
    except ValueError:
        sys.exit("server.py: --load %s: give CLIENTS:PROMPT:OUTPUT, such as 64:512:256" % args.load)
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("server.py: PyTorch sees no GPU here: use --device cpu with a small model to try the program")
    model = Model(args.layers, args.width, args.inner, args.heads, args.shared, args.most, args.context, args.device)
    metrics = Metrics()
    server = Server(model, args.most, metrics)
    server.set_load(*load)
    model.prefill(0, 16)
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", args.port), answer_http(server, metrics))
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    print("serving on http://127.0.0.1:%d/metrics" % listener.server_address[1], flush=True)
    end = time.perf_counter() + args.seconds
    while time.perf_counter() < end:
        if not server.step():
            time.sleep(0.001)
    print("%d tokens generated, %d requests" % (metrics.generated, metrics.finished), flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
