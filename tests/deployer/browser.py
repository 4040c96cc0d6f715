"""Logs in at the dashboard of a cloud with headless Chromium, as the administrator does, and makes a picture of the list of servers.

    browser.py SITE KEY PASSWORD-FILE SERVER PICTURE

KEY: the digest (base64 of SHA-256) of the public key of the certificate that is trusted, which the caller has verified.
SERVER: the name of a server that has to be in the list. Chromium is driven by its own program chromedriver.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PATIENCE = 60


class Browser:
    def __init__(self, key, home):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env={**os.environ, "HOME": home})
        # It says on which port it was started.
        port = next(line.rsplit("port ", 1)[1].strip().rstrip(".") for line in self.driver.stdout if "successfully on port" in line)
        self.url = f"http://127.0.0.1:{port}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,720", "--hide-scrollbars",
                     f"--user-data-dir={home}/profile", f"--ignore-certificate-errors-spki-list={key}"]
        wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}}
        self.url += "/" + self.call("POST", "", {"capabilities": wanted})["sessionId"]

    def call(self, method, path, body=None):
        data = None if method == "GET" or method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.loads(error.read())["value"]
            raise LookupError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def find(self, selector):
        """The element; waits until the page has it."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return "/element/" + self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
            except LookupError as error:
                if time.monotonic() > end:
                    sys.exit(f"browser.py: no {selector} at {self.call('GET', '/url')}: {error}")
                time.sleep(0.5)

    def write(self, selector, text):
        self.call("POST", self.find(selector) + "/value", {"text": text})

    def click(self, selector):
        self.call("POST", self.find(selector) + "/click")

    def end(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def main():
    site, key, password, server, picture = sys.argv[1:]
    with open(password) as file:
        password = file.read().strip()
    with tempfile.TemporaryDirectory() as home:
        browser = Browser(key, home)
        try:
            browser.call("POST", "/url", {"url": f"{site}/auth/login/"})
            browser.write("#id_username", "admin")
            browser.write("#id_password", password)
            browser.click("#loginBtn")
            # The menu of the user is there after the login alone.
            browser.find("a[href$='/auth/logout/']")
            browser.call("POST", "/url", {"url": f"{site}/project/instances/"})
            browser.find("#instances tbody tr a[href*='/project/instances/']")
            text = browser.call("GET", browser.find("#instances tbody") + "/text")
            if server not in text:
                sys.exit(f"browser.py: the list has no server {server}: {text[:300]}")
            # Until images and menus are drawn.
            time.sleep(2)
            data = base64.b64decode(browser.call("GET", "/screenshot"))
        finally:
            browser.end()
    with open(picture, "wb") as file:
        file.write(data)


main()
