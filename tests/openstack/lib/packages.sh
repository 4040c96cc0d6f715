# Debian packages: libraries are installed, a few scripts and paste files are only unpacked.

# The python3-* libraries instead of nova-compute, keystone and so on: those ask debconf questions, configure databases,
# install init scripts and depend on libvirt.
INSTALL="python3-keystone python3-glance python3-placement python3-nova python3-neutron python3-cinder python3-octavia
 python3-ovn-octavia-provider python3-openstackclient python3-octaviaclient python3-osc-placement python3-openvswitch
 python3-pymysql python3-memcache
 mariadb-server-core mariadb-client-core rabbitmq-server memcached ovn-central openvswitch-switch qemu-utils
 uwsgi-core uwsgi-plugin-python3 openssh-client openssl"
# Only a start script and an api-paste.ini of each of these is needed.
UNPACK="nova-common nova-api nova-compute nova-conductor nova-scheduler neutron-common cinder-common cinder-api
 cinder-scheduler cinder-volume glance-common glance-api"

packages() {
    local wanted=() absent=() p
    local -A have=()
    while read -r p; do have[$p]=1; done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p')
    for p in $INSTALL; do [[ ${have[$p]:-} ]] || wanted+=("$p"); done
    for p in $UNPACK; do [[ -e $PKG/.$p ]] || absent+=("$p"); done
    ((${#wanted[@]} + ${#absent[@]})) || return 0
    command -v apt-get >/dev/null || die "needs Debian 12: there is no apt-get to install ${wanted[*]} ${absent[*]}"
    offered "${wanted[@]}" "${absent[@]}"
    if ((${#wanted[@]})); then install_packages "${wanted[@]}"; fi
    for p in "${absent[@]}"; do unpack "$p"; done
    say "packages present"
}

# One clear line before a long download, instead of apt's many errors after it.
offered() {
    local missing
    missing=$(not_offered "$@")
    if [[ $missing ]]; then
        [[ $EUID == 0 ]] || die "needs root once, to install:$missing"
        apt_get "$LOG/apt-update.log" update || die "apt-get update failed: $(complaint "$LOG/apt-update.log")"
        missing=$(not_offered "$@")
    fi
    [[ -z $missing ]] || die "this machine's package sources do not offer$missing (Debian 12, bookworm, has them; see /etc/apt/sources.list)"
}

not_offered() {
    local p
    local -A candidate=()
    while read -r p; do candidate[$p]=1; done < <(apt-cache policy "$@" 2>/dev/null | awk '/^[^ ]/ {sub(":$", ""); p = $1} /^  Candidate:/ && $2 != "(none)" {print p}')
    for p; do [[ ${candidate[$p]:-} ]] || printf ' %s' "$p"; done
}

install_packages() {
    [[ $EUID == 0 ]] || die "needs root once, to install: $*"
    say "installing $# packages and what they depend on"
    local policy=/usr/sbin/policy-rc.d made=
    # This prevents packages from starting their daemons: only daemons that `up` starts may run.
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
        made=1
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    # The default umask, for files that maintainer scripts create.
    local log=$LOG/apt-install.log
    local options=(--no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold)
    (
        umask 022
        # apt refuses to begin while an installation that was killed is unfinished; dpkg keeps what it had begun here.
        if compgen -G '/var/lib/dpkg/updates/[0-9]*' >/dev/null; then
            say "finishing an installation that was interrupted"
            dpkg --configure -a --force-confdef --force-confold >>"$log" 2>&1 </dev/null
        fi
        apt_get "$log" install -y "${options[@]}" "$@" && exit
        # Package lists that are older than the last point release contain files that the mirror no longer has.
        apt_get "$log" update && apt_get "$log" install -y "${options[@]}" "$@"
    ) || die "apt-get install failed: $(complaint "$log")"
    if [[ $made ]]; then
        rm -f $policy
        trap - EXIT
    fi
}

unpack() {
    (
        cd "$PKG" && rm -f "$1"_*.deb &&
            # The sandbox user _apt cannot write into a directory of mode 0700.
            apt_get "$LOG/apt-download.log" -o APT::Sandbox::User=root download "$1" && dpkg -x "$1"_*.deb . && rm -f "$1"_*.deb && touch ".$1"
    ) || die "fetching the package $1 failed: $(complaint "$LOG/apt-download.log")"
}

apt_get() {
    local log=$1
    shift
    nice -n "$NICE" apt-get -q -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1 </dev/null
}

complaint() { grep -h '^E: ' "$1" | tail -1 | grep . || echo "see $1"; }
