"""Asks a cloud ten times a second until FILE.end exists: a token, a list of servers, of networks, of images and of flavors in turns.

    asking.py FILE      (the cloud `cloud` of OS_CLIENT_CONFIG_FILE)

Writes a line to FILE when the first request was answered, and at the end how many were sent and how many failed; what failed is in FILE.failed.
"""
import concurrent.futures
import os
import sys
import time

import openstack

PAUSE = 0.1


def main():
    path = sys.argv[1]
    cloud = openstack.connect(cloud="cloud")
    project = cloud.current_project_id

    def token():
        # Not that of the session, which is asked for once.
        openstack.connect(cloud="cloud").authorize()

    def get(session, url):
        answer = session.get(url)
        if answer.status_code != 200:
            raise RuntimeError(f"{url}: {answer.status_code} {answer.text[:200]}")

    requests = [
        ("token", token),
        ("servers", lambda: get(cloud.compute, "/servers")),
        ("networks", lambda: get(cloud.network, "/networks")),
        ("flavors", lambda: get(cloud.compute, "/flavors")),
        ("images", lambda: get(cloud.image, "/images")),
        ("project", lambda: get(cloud.identity, f"/projects/{project}")),
    ]
    for _, request in requests:
        request()
    failed = []

    def ask(name, request):
        try:
            request()
        except Exception as error:  # whatever a client would see
            failed.append(f"{time.strftime('%H:%M:%S')} {name}: {error!r}")

    with open(path, "w") as file, concurrent.futures.ThreadPoolExecutor(32) as pool:
        print("answered", file=file, flush=True)
        count, start = 0, time.monotonic()
        while not os.path.exists(path + ".end"):
            pool.submit(ask, *requests[count % len(requests)])
            count += 1
            time.sleep(max(0, start + count * PAUSE - time.monotonic()))
        pool.shutdown()
        print(count, len(failed), file=file)
    with open(path + ".failed", "w") as file:
        file.writelines(line + "\n" for line in failed)


main()
