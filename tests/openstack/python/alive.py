"""Whether an API server answers: alive.py ADDRESS. Its certificate is not looked at, as nothing is sent but this question."""
import ssl
import sys
import urllib.request

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
try:
    with urllib.request.urlopen(f'https://{sys.argv[1]}:6443/livez', timeout=5, context=context) as answer:
        sys.exit(0 if answer.status == 200 else f'status {answer.status}')
except OSError as error:
    sys.exit(f'{sys.argv[1]}: {error}')
