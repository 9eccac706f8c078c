"""Looks at the page of a running service in Chromium.

    python3 page.py GIANTSTREAM [SCREENSHOTS]

starts the program GIANTSTREAM on a small graph whose ids and texts are hostile, with all roles, a token and the
embedded broker, opens its page at 390 and 1,280 pixels, light and dark, and checks what it shows. With a folder, it
leaves screenshots there. It needs Playwright (PyPI) and Chromium, named by CHROMIUM or found on the path, and
skips with exit code 0 where one of them is missing.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

TOKEN = "a-token"
HOSTILE = '<img src=x onerror="window.hacked=1">'
WAIT = 60_000  # milliseconds: of the browser, for what it waits for


def skip(why):
    print("skipped:", why)
    sys.exit(0)


def write_graph(folder):
    """240 nodes on four subjects that link within their subject. One id is HTML, as are all texts."""
    words = [["bread", "oven", "flour"], ["sail", "harbour", "anchor"], ["violin", "opera", "chord"],
             ["goal", "match", "keeper"]]
    name = lambda i: HOSTILE if i == 0 else f"node-{i:03d}"
    with open(f"{folder}/nodes.jsonl", "w") as nodes, open(f"{folder}/edges.jsonl", "w") as edges:
        for i in range(240):
            w = words[i % 4]
            text = f"{w[i % 3]} {w[i // 3 % 3]} {w[i // 7 % 3]} n{i} <script>window.hacked=1</script>"
            nodes.write(json.dumps({"id": name(i), "text": text, "label": f"s{i % 4}"}) + "\n")
            for step in (4, 24):
                edges.write(json.dumps({"src": name(i), "dst": name((i + step) % 240)}) + "\n")
        nodes.write('{"id": 1.5e\n')  # a dead letter
    with open(f"{folder}/changes.jsonl", "w") as changes:
        for i in range(30):
            changes.write(json.dumps({"id": name(i), "text": f"{words[i % 4][0]} {words[i % 4][1]} again n{i}",
                                      "label": f"s{i % 4}"}) + "\n")
    with open(f"{folder}/later.jsonl", "w") as later:  # too few for another generation
        for i in range(40, 45):
            later.write(json.dumps({"id": name(i), "text": " ".join(words[(i + 1) % 4]) + " nebula", "label": f"s{i % 4}"}) + "\n")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def status(url):
    request = urllib.request.Request(url + "/status.json", headers={"Authorization": "Bearer " + TOKEN})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def configure(folder, port):
    config = f"""
pipeline: "page"
store: {folder}/store
state_dir: {folder}/state
shards: 2
kafka: {{data_dir: {folder}/broker}}
featurize: {{projection_dim: 24}}
embedding: {{dim: 16}}
refresh: {{min_nodes: 200}}
train: {{encoder: linear}}
http: {{listen: "127.0.0.1:{port}", token: {TOKEN}}}
"""
    with open(f"{folder}/page.yaml", "w") as file:
        file.write(config)


def start(program, folder, *files):
    with open(f"{folder}/log", "a") as log:
        return subprocess.Popen([program, "run", "-c", f"{folder}/page.yaml", "--roles", "stream,refresh,embed,serve",
                                 *files], stdout=log, stderr=log)


def stop(service):
    service.send_signal(signal.SIGTERM)
    try:
        service.wait(60)
    except subprocess.TimeoutExpired:
        service.kill()


def wait_until_served(process, folder, url, generation, changed=0):
    """Waits for a generation to be searched, the dead letter to be counted, changes that were published before the
    second generation, and as many nodes changed since."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if process.poll() is not None:
            sys.exit("the service has ended:\n" + open(f"{folder}/log").read())
        try:
            now = status(url)
            fresh = now["metrics"]["giantstream_embedding_freshness_seconds"][0].get("count", 0)
            if ((now.get("serve") or {}).get("generation") == generation and (now["status"]["dead_letters"] or {})["total"]
                    and (generation == 1 or fresh > 0) and now["drift"]["embeddings"]["compared"] >= changed):
                return
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(0.5)
    sys.exit("no generation is served after two minutes:\n" + open(f"{folder}/log").read())


def check(page, url, width, scheme, screenshots):
    errors = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" and "401" not in m.text else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    asked = []
    page.on("request", lambda r: asked.append(r.url))
    page.goto(url + "/", wait_until="load")

    # It asks for the token, and says so if it is the wrong one.
    page.wait_for_selector("#login:not([hidden])", timeout=WAIT)
    page.fill("#token", "wrong")
    page.click("#login button")
    page.wait_for_selector("text=This is not the token", timeout=WAIT)
    assert page.locator("#all").is_hidden()
    page.fill("#token", TOKEN)
    page.click("#login button")
    page.wait_for_selector("#all:not([hidden])", timeout=WAIT)
    page.wait_for_selector("#state.good", timeout=WAIT)

    # What it says is what the service says.
    said = page.inner_text("#all")
    now = status(url)
    for want in ["Lag", "since the start: ", "bad_json", "Generation", "Generations",
                 f"{now['status']['nodes']} / {now['status']['edges']}", now["status"]["shards"][0]["worker"]]:
        assert want in said, f"{want!r} is not on the page:\n{said}"
    assert page.locator("#shards tbody tr").count() == 2
    assert page.locator("#generations tbody tr").count() == len(now["status"]["generations"])
    assert page.locator("#windows tbody tr").count() >= 1

    # How far the graph has gone from its generation, and the figures of all generations.
    for want in ["Rows changed since the newest generation", "in the texts it was fitted on", "Cosine of embeddings to those before",
                 "of 5 changed nodes; 100.0 % below 0.9", "5 rows; the next generation begins at 5.0 %", "Nodes that came / went"]:
        assert want in said, f"{want!r} is not on the page:\n{said}"
    for figures in ("auc-chart", "mrr-chart", "class-chart"):
        assert page.locator(f"#{figures} circle").count() == 4, f"{figures}: two encoders of two generations have a point each"

    # The map has every node. A group can be looked at alone, and a point leads to what is similar.
    page.wait_for_selector("#map circle", timeout=WAIT)
    assert page.locator("#map circle").count() == 240
    assert page.locator("#legend button").count() == 4
    page.click("#legend button:first-child")
    assert page.locator("#map circle.faint").count() == 180
    page.click("#legend button:first-child")
    assert page.locator("#map circle.faint").count() == 0
    page.locator("#map circle").nth(100).dispatch_event("click")
    page.wait_for_selector("#results tbody tr", timeout=WAIT)
    assert page.locator("#map circle.found").count() == 11, "the node and its ten nearest"

    # Neighbours of an id that is HTML, and of a text; what is found can be followed.
    page.fill("#query", HOSTILE)
    page.click("#search button")
    page.wait_for_selector("#results tbody tr", timeout=WAIT)
    assert page.locator("#results tbody tr").count() == 10
    page.click("#results tbody tr:first-child button")
    page.wait_for_function("document.querySelector('#query').value.startsWith('node-')", timeout=WAIT)
    page.select_option("#by", "text")
    page.fill("#query", "bread from the oven")
    page.click("#search button")
    page.wait_for_selector("#answer:has-text('nearest in generation')", timeout=WAIT)
    page.select_option("#by", "id")
    page.fill("#query", "<b>nobody</b>")
    page.click("#search button")
    page.wait_for_selector("#answer:has-text('no such node')", timeout=WAIT)
    page.fill("#query", "node-004")
    page.click("#search button")
    page.wait_for_selector("#results tbody tr", timeout=WAIT)

    # Reasons wait until the texts are read, and stand beside each answer.
    page.check("#why")
    page.click("#search button")
    page.wait_for_selector("#results th:has-text('Made of')", timeout=WAIT)
    made = page.locator("#results tbody tr").all_inner_texts()
    assert len(made) == 10 and all("rounding" in row and "others" in row for row in made), made

    assert page.evaluate("window.hacked") is None, "something of the input ran"
    assert page.locator("#all img, #all script, #all b").count() == 0, "something of the input is an element"
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], f"the page is {wide[0]} pixels wide in {wide[1]}"
    outside = [u for u in asked if not u.startswith(url)]
    assert not outside, f"requests to others: {outside}"
    expected = re.compile("404|503")  # of the id that does not exist, and of reasons before the texts are read
    errors = [e for e in errors if not expected.search(e)]
    assert not errors, errors
    if screenshots:
        page.screenshot(path=f"{screenshots}/page-{width}-{scheme}.png", full_page=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("this Python has no playwright (pip install playwright)")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        skip("no Chromium on the path (apt-get install chromium, or CHROMIUM=/path)")
    screenshots = sys.argv[2] if len(sys.argv) > 2 else ""
    if screenshots:
        os.makedirs(screenshots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{(port := free_port())}"
        write_graph(folder)
        configure(folder, port)
        service = start(sys.argv[1], folder, "--nodes", f"{folder}/nodes.jsonl", "--edges", f"{folder}/edges.jsonl")
        try:
            wait_until_served(service, folder, url, 1)
            stop(service)
            service = start(sys.argv[1], folder, "--nodes", f"{folder}/changes.jsonl")
            wait_until_served(service, folder, url, 2)
            stop(service)
            service = start(sys.argv[1], folder, "--nodes", f"{folder}/later.jsonl")
            wait_until_served(service, folder, url, 2, changed=5)
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                for width in (390, 1280):
                    for scheme in ("light", "dark"):
                        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
                        check(context.new_page(), url, width, scheme, screenshots)
                        context.close()
                        print(f"{width} pixels, {scheme}: as it should be")
                browser.close()
        finally:
            stop(service)


main()
