# The requirements on this machine.

# missing_packages: the Debian packages whose programs are missing.
missing_packages() {
	local missing=() pair
	for pair in containerd:containerd runc:runc iptables:iptables nft:nftables conntrack:conntrack ip:iproute2 nsenter:util-linux \
		pgrep:procps openssl:openssl curl:curl jq:jq mmdebstrap:mmdebstrap mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
	done
	[[ -n $(cni_plugins) ]] || missing+=(containernetworking-plugins)
	[[ $(dpkg-query -W -f '${db:Status-Status}' busybox-static 2>/dev/null) == installed ]] || missing+=(busybox-static)
	echo "${missing[*]}"
}

# cni_plugins: the directory of the CNI plugins.
cni_plugins() {
	local directory
	for directory in /usr/lib/cni /opt/cni/bin; do
		[[ ! -x $directory/bridge ]] || { echo "$directory"; return; }
	done
}

# free_port: exits with a one-line message if another program listens at the address of the API server on the host.
free_port() {
	runs_on_the_host forward || ! (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null ||
		die "another program listens on 127.0.0.1:$PORT; choose another port with FERROSTACK_NODE_PORT"
}

# requirements NODES: exits with a one-line message if a requirement is not met.
requirements() {
	local missing available needed=$((900 + 350 * $1))
	[[ $EUID == 0 ]] || die "root is needed: nodes are namespaces with mounts and a network of their own"
	missing=$(missing_packages)
	[[ -z $missing ]] || die "missing packages: $missing; install them with: $PROGRAM install"
	command -v go >/dev/null || die "Go is needed to build Kubernetes' programs (https://go.dev/dl), and 'go' is not in PATH"
	available=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
	((available >= needed)) || first 0 >/dev/null || die "$1 nodes need ${needed} MB of free memory, and ${available} MB are free"
	unshare --net true 2>/dev/null || die "this machine does not let root make network namespaces"
}
