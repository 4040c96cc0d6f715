# Installs the Debian packages for `up` and the images. No daemon is started.

(($# == 0)) || usage
[[ $EUID == 0 ]] || die "root is needed to install packages"
command -v apt-get >/dev/null || die "Debian 12 is needed: there is no apt-get"
. "$PARTS/requirements.sh"
missing=$(missing_packages)
if [[ -n $missing ]]; then
	policy=/usr/sbin/policy-rc.d
	if [[ ! -e $policy ]]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	log=$(mktemp)
	install() { apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing >"$log" 2>&1 </dev/null; }
	# apt refuses to begin while an installation that was killed is unfinished; dpkg keeps what it had begun here.
	if compgen -G '/var/lib/dpkg/updates/[0-9]*' >/dev/null; then
		say "finishing an installation that was interrupted"
		DEBIAN_FRONTEND=noninteractive dpkg --configure -a >"$log" 2>&1 </dev/null || true
	fi
	say "installing $missing"
	install || { apt-get -q update >"$log" 2>&1 && install; } || die "apt-get install failed: $(grep '^E: ' "$log" | tail -n 1)"
	rm -f "$log"
fi
missing=$(missing_packages)
[[ -z $missing ]] || die "these packages were installed, but their programs are not in PATH: $missing"
say "all packages are installed"
