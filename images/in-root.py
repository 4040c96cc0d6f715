"""What makes of installed distributions an image of the services: images/from-pypi runs it in the root of the image.

Files that services look for in /etc, Debian's modules that PyPI has not, Horizon's translations and static files, byte code.
"""
import compileall
import os
import pathlib
import py_compile
import shutil
import subprocess
import sys

ENVIRONMENT = pathlib.Path(sys.prefix)
PACKAGES = next(ENVIRONMENT.glob('lib/python3*/site-packages'))
DEBIAN = pathlib.Path('/usr/lib/python3/dist-packages')
# Open vSwitch's library resolves names with the first alone; the others are of the packages of libvirt and of Ceph.
LINKED = ['unbound.py', '_unbound.*.so', 'libvirt*.py', 'libvirtmod*.so', 'rados.*.so', 'rbd.*.so']
# What services look for: pipelines of their APIs, and Glance's definitions of metadata where Debian has them.
COPIED = {
    'etc/nova/api-paste.ini': '/etc/nova/api-paste.ini',
    'etc/neutron/api-paste.ini': '/etc/neutron/api-paste.ini',
    'etc/cinder/api-paste.ini': '/etc/cinder/api-paste.ini',
    'etc/cinder/resource_filters.json': '/etc/cinder/resource_filters.json',
    'etc/glance/glance-api-paste.ini': '/etc/glance/glance-api-paste.ini',
    'etc/glance/metadefs': '/usr/share/glance-common/metadefs',
}
# What descriptions of the APIs of other clouds are good for: backups of Cinder that go there, which no cloud of ours makes.
UNUSED = ['googleapiclient/discovery_cache/documents', 'botocore/data']
DASHBOARD = pathlib.Path('/etc/openstack-dashboard')
STATIC = '/var/lib/openstack-dashboard/static'
# Those that the deployer sets, too: the names of compressed files depend on them. By default Horizon's cache is a memcached of this machine.
SETTINGS = f'''CACHES = {{'default': {{'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}}}
COMPRESS_OFFLINE = True
STATIC_ROOT = '{STATIC}'
STATIC_URL = '/static/'
WEBROOT = '/'
SECRET_KEY = 'of the build'
'''
# Django's compressor renders in threads, and drops what a thread fails with: a block is missing then, and Horizon answers every page that
# has it with 500. One after the other, a failure is that of the build.
COMPRESS = '''
import concurrent.futures

import django
from django.core.management import call_command


class InTurn:
    def __init__(self, max_workers):
        pass

    def submit(self, function, *arguments):
        function(*arguments)

    def shutdown(self, wait):
        pass


concurrent.futures.ThreadPoolExecutor = InTurn
django.setup()
call_command('compress', force=True)
'''


def main():
    for pattern in LINKED:
        for module in DEBIAN.glob(pattern):
            (PACKAGES / module.name).symlink_to(module)
    for source, target in COPIED.items():
        source, target = ENVIRONMENT / source, pathlib.Path(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    shutil.rmtree(ENVIRONMENT / 'etc')
    for directory in UNUSED:
        shutil.rmtree(PACKAGES / directory)
    translations()
    dashboard()
    for tests in sorted(PACKAGES.rglob('tests')):
        if tests.is_dir():
            shutil.rmtree(tests, ignore_errors=True)
    # Without times of files, and in one process: what it holds already decides which constants are marked as used twice.
    compileall.compile_dir(PACKAGES, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def translations():
    """Compiles those of Horizon; those of the services, of their logs and errors, are left out."""
    from babel.messages import mofile, pofile

    for source in sorted(PACKAGES.rglob('*.po')):
        if PACKAGES.joinpath('horizon') in source.parents or {'openstack_dashboard', 'openstack_auth'} & set(source.parts):
            with source.open('rb') as file, source.with_suffix('.mo').open('wb') as compiled:
                mofile.write_mo(compiled, pofile.read_po(file))
        source.unlink()


def dashboard():
    local = PACKAGES / 'openstack_dashboard/local'
    DASHBOARD.joinpath('local_settings.d').mkdir(parents=True)
    settings = DASHBOARD / 'local_settings.py'
    settings.write_text(SETTINGS)
    (local / 'local_settings.py').symlink_to(settings)
    shutil.rmtree(local / 'local_settings.d', ignore_errors=True)
    (local / 'local_settings.d').symlink_to(DASHBOARD / 'local_settings.d')
    environment = {**os.environ, 'DJANGO_SETTINGS_MODULE': 'openstack_dashboard.settings'}
    for command in (['-m', 'django', 'collectstatic', '--noinput'], ['-c', COMPRESS]):
        subprocess.run([sys.executable, *command], check=True, env=environment)
    settings.unlink()


if __name__ == '__main__':
    main()
