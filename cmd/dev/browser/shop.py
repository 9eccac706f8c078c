"""Looks at examples/shop in Chromium.

    python3 shop.py GIANTSTREAM [SCREENSHOTS]

makes the shop of examples/shop/catalog.py with an item more whose id and brand are HTML, starts the program GIANTSTREAM
on it with a token, and asks it through the page at 390 and 1,280 pixels, light and dark, by keyboard alone. With a
folder, it leaves screenshots there. It needs what page.py needs, and skips likewise.
"""

import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

SHOP = pathlib.Path(__file__).resolve().parents[3] / "examples" / "shop"
HOSTILE = '<img src=x onerror="window.hacked=1">'
TOKEN = "a-token"
WAIT = 30_000  # milliseconds


def skip(why):
    print("skipped:", why)
    sys.exit(0)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(program, folder, port, origin):
    subprocess.run([sys.executable, SHOP / "catalog.py", folder], check=True)
    with open(f"{folder}/nodes.jsonl", "a") as nodes:
        nodes.write(json.dumps({"id": HOSTILE, "text": "Alder red tent: hostile zeppelin", "price": 1, "stock": 5,
                                "brand": HOSTILE}) + "\n")
    config = (SHOP / "shop.yaml").read_text().replace("127.0.0.1:9464", f"127.0.0.1:{port}")
    config = config.replace("http://localhost:8000", origin) + (
        "  tokens:\n  - {name: page, token: " + TOKEN + ", scopes: [read, embed]}\n"
        "  - {name: poor, token: poor, scopes: [read], rate: 0.001}\n")
    pathlib.Path(folder, "shop.yaml").write_text(config)
    with open(f"{folder}/log", "w") as log:
        return subprocess.Popen([program, "run", "-c", "shop.yaml", "--nodes", "nodes.jsonl", "--orders", "orders.jsonl",
                                 "--roles", "stream,refresh,embed,serve"], cwd=folder, stdout=log, stderr=log)


def wait_until_served(service, folder, port):
    question = urllib.request.Request(f"http://127.0.0.1:{port}/similar/tent-alder-red?k=1&explain=true",
                                      headers={"Authorization": "Bearer " + TOKEN})
    for _ in range(240):
        if service.poll() is not None:
            break
        try:
            with urllib.request.urlopen(question, timeout=10):
                return
        except urllib.error.HTTPError as e:
            if e.code == 404:  # the catalog has no item of this name, and is served
                return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit("nothing is served after two minutes:\n" + open(f"{folder}/log").read())


def check(page, url, width, scheme, screenshots):
    errors = []
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto(url, wait_until="load")

    def use(field, text):
        page.focus(field)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)

    def said(section, what):
        page.wait_for_selector(f"#{section}:not([aria-busy]) >> text={what}", timeout=WAIT)

    # Without a token, and with one that may not embed and may ask next to never, it says so in words.
    use("#words", "hostile zeppelin tent")
    page.keyboard.press("Enter")
    said("found", "asks for a token")
    page.focus("summary")
    page.keyboard.press("Enter")
    for token, what in [("poor", "This page may not ask that" if width == 390 and scheme == "light" else "Too many questions"),
                        (TOKEN, "cosine")]:
        if page.locator("#token").is_hidden():
            page.focus("summary")
            page.keyboard.press("Enter")
        use("#token", token)
        use("#show", "price, stock, brand")
        page.keyboard.press("Enter")
        said("found", what)

    # What is found is text, whatever it has in it, and leads to the item.
    assert page.locator("#found li").count() == 8
    use("#where", "price<2")
    use("#words", "hostile zeppelin tent")
    page.keyboard.press("Enter")
    said("found", "price 1 ·")
    row = page.locator("#found li").filter(has_text="window.hacked")
    assert row.count() == 1, page.inner_text("#found")
    assert HOSTILE in row.inner_text() and "price 1 · stock 5" in row.inner_text()
    use("#where", "price>0")
    row.locator("button").focus()
    page.keyboard.press("Enter")
    said("similar", "cosine")
    page.wait_for_selector("#goes:not([aria-busy])", timeout=WAIT)
    assert page.inner_text("#item h2") == HOSTILE and page.evaluate("document.activeElement.id") == "item"
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0

    # Filters hold for both lists, reasons stand beside what goes with it, and the answer's age below.
    use("#where", "price<80 and stock>0")
    use("#words", "waterproof boot for trails")
    page.keyboard.press("Enter")
    said("found", "cosine")
    page.locator("#found li button").first.focus()
    page.keyboard.press("Enter")
    said("similar", "cosine")
    lines = page.inner_text("#similar").splitlines()
    assert any(l.startswith("cosine") and " · " in l for l in lines), f"no reasons: {lines}"
    said("goes", "orders have it with")
    said("goes", "texts are alike")
    for section in ("similar", "goes"):
        for text in page.locator(f"#{section} li").all_inner_texts():
            price = float(text.split("price ")[1].split(" ")[0])
            assert price < 80 and "stock 0" not in text, text
    assert "nodes:0:" in page.inner_text("#fresh")
    first = page.inner_text("#similar")
    page.go_back()
    page.go_forward()
    said("similar", "cosine")
    assert page.inner_text("#similar") == first
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    if screenshots:
        page.screenshot(path=f"{screenshots}/shop-{width}-{scheme}.png", full_page=True)

    # A filter that is wrong is said, and so is a service that is not there.
    use("#where", "prize<80")
    use("#words", "boot")
    page.keyboard.press("Enter")
    said("found", "price")
    page.focus("summary")
    page.keyboard.press("Enter")
    use("#url", "http://127.0.0.1:1")
    page.keyboard.press("Enter")
    said("found", "in http.cors.origins")
    assert not errors, errors


def main():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("this Python has no playwright (pip install playwright)")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        skip("no Chromium on the path (apt-get install chromium, or CHROMIUM=/path)")
    program, screenshots = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if screenshots:
        os.makedirs(screenshots, exist_ok=True)
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SHOP))
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{pages.server_port}"
    with tempfile.TemporaryDirectory() as folder:
        service = start(program, folder, port := free_port(), origin)
        try:
            wait_until_served(service, folder, port)
            url = f"{origin}/?url=" + urllib.parse.quote(f"http://127.0.0.1:{port}")
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                for width in (390, 1280):
                    for scheme in ("light", "dark"):
                        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
                        check(context.new_page(), url, width, scheme, screenshots)
                        context.close()
                        print(f"shop, {width} pixels, {scheme}: as it should be")
                browser.close()
        finally:
            service.send_signal(signal.SIGTERM)
            try:
                service.wait(60)
            except subprocess.TimeoutExpired:
                service.kill()


main()
