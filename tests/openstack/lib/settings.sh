# Paths and names. Sourced first by up, down and check; sets variables only.

IP=127.0.0.1
STATE=${FERROSTACK_OPENSTACK_DIR:-$ROOT/target/openstack}
HOSTS=${FERROSTACK_OPENSTACK_HOSTS:-6}             # simulated hypervisors, odd ones in az1, even ones in az2
NICE=${FERROSTACK_OPENSTACK_NICE:-10}              # of the daemons and apt: the machine may be compiling, too
NEEDED_MB=${FERROSTACK_OPENSTACK_MEMORY_MB:-5000}  # memory that must be available before the start
OCTAVIA=${FERROSTACK_OPENSTACK_OCTAVIA:-fixed}      # or debian: see python/octavia_worker.py

# Other variables could change where Debian's Python finds modules (pyenv, PYTHONPATH), the cloud of the client library
# (OS_*) or the questions of apt (debconf).
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE "${!OS_@}"
umask 077                                          # configuration files hold passwords

ETC=$STATE/etc RUN=$STATE/run LOG=$STATE/log DATA=$STATE/data PKG=$STATE/pkg
CLOUDS=$STATE/clouds.yaml
BIN=$PKG/usr/bin                                   # scripts of packages that are unpacked, not installed
USER_NAME=$(id -un)

# name:port of all listeners, in the order of starting
PORTS="mariadb:3306 memcached:11211 epmd:4369 rabbitmq:5672 rabbitmq:25672 ovn-nb:6641 ovn-sb:6642 keystone:5000
 placement:8778 glance:9292 nova-api:8774 neutron:9696 cinder-api:8776 octavia-api:9876"

STARTED_AT=${EPOCHREALTIME/./}
say() {
    local ms=$(((${EPOCHREALTIME/./} - STARTED_AT) / 1000))
    printf '[%3d.%d s] %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"
}
die() {
    echo "$PROGRAM: $*" >&2
    exit 1
}
