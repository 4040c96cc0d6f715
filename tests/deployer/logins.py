"""First logins of a day: each user logs in several times at once.

    logins.py make | first | remove      (the cloud `cloud` of OS_CLIENT_CONFIG_FILE)

make: the users; first: they log in, and what failed is printed, with exit code 1; remove: they go.
"""
import concurrent.futures
import sys

import openstack
from keystoneauth1 import session
from keystoneauth1.identity import v3

USERS = 24
AT_ONCE = 4
PREFIX = "first-login-"
PASSWORD = "of-a-test"  # of users without a role, for minutes


def main(command):
    cloud = openstack.connect(cloud="cloud")
    url = cloud.config.auth["auth_url"]
    verify = cloud.config.get_requests_verify_args()[0]
    users = [user for user in cloud.identity.users() if user.name.startswith(PREFIX)]
    if command == "make":
        for n in range(USERS):
            cloud.identity.create_user(name=f"{PREFIX}{n}", password=PASSWORD, domain_id="default")
    elif command == "remove":
        for user in users:
            cloud.identity.delete_user(user)
    else:
        log_in(users, url, verify)


def log_in(users, url, verify):
    def ask(user):
        # A session of its own: a connection that is kept hides a failure behind a second try.
        auth = v3.Password(auth_url=url, user_id=user.id, password=PASSWORD, unscoped=True)
        session.Session(auth=auth, verify=verify).get_token()

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        # Those of one user are beside each other.
        asked = [(user.name, pool.submit(ask, user)) for user in users for _ in range(AT_ONCE)]
    failed = [f"{name}: {login.exception()!r}" for name, login in asked if login.exception()]
    print(f"{len(asked)} first logins of {len(users)} users, {len(failed)} failed", *failed[:5], sep="\n")
    sys.exit(1 if failed or len(users) != USERS else 0)


main(sys.argv[1])
