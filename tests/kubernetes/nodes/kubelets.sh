# The programs of a node: containerd with its images, the kubelet, kube-proxy, and a pod network.

# kubelet N CLOUD-PROVIDER IMAGES
kubelet() {
	local n=$1 cloud=$2 directory=$STATE/machine-$1
	mkdir -p "$directory"/{containerd,cni,plugins,imported}
	: >>"$directory/resolv.conf"
	containerd_configuration "$directory" | put "$directory/containerd.toml"
	kubelet_configuration "$n" "$directory" | put "$directory/kubelet.yaml"
	proxy_configuration "$n" | put "$directory/proxy.yaml"
	start "$n" containerd containerd --config "$directory/containerd.toml"
	until_true 30 "containerd of node-$n" "$STATE/log/containerd-$n.log" on "$n" ctr version
	import_images "$n" "$directory" "$ROOT"/target/images/*.tar ${3:+"$3"/*.tar}
	start "$n" kubelet "$TOOLS/kubelet" --config="$directory/kubelet.yaml" --kubeconfig="$STATE/pki/node-$n.conf" \
		--hostname-override="node-$n" --node-ip="$(address "$n")" --root-dir=/var/lib/kubelet ${cloud:+--cloud-provider="$cloud"}
	start "$n" kube-proxy "$TOOLS/kube-proxy" --config="$directory/proxy.yaml"
}

# import_images N DIRECTORY ARCHIVE…: imports each archive that has changed since its last import.
import_images() {
	local n=$1 directory=$2 archive mark
	shift 2
	for archive in "$@"; do
		mark=$directory/imported/$(basename "$archive")
		[[ $mark -nt $archive || ! -e $archive ]] && continue
		on "$n" ctr -n k8s.io images import "$(realpath "$archive")" >>"$STATE/log/containerd-$n.log" 2>&1 ||
			die "node-$n cannot import $archive; see $STATE/log/containerd-$n.log"
		touch "$mark"
	done
}

containerd_configuration() {
	cat <<-TOML
		version = 2
		root = "$1/containerd"
		state = "/run/containerd"
		disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
		[grpc]
		  address = "/run/containerd/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "$(pause_image)"
		  # Where root may not lower the score, as in some virtual machines and containers, no pod would start.
		  restrict_oom_score_adj = true
		[plugins."io.containerd.grpc.v1.cri".cni]
		  bin_dir = "$(cni_plugins)"
		  conf_dir = "$1/cni"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		  runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		  SystemdCgroup = false
	TOML
}

pause_image() { "$TOOLS/kubeadm" config images list --kubernetes-version "$("$TOOLS/kubeadm" version -o short)" 2>/dev/null | grep /pause:; }

kubelet_configuration() {
	cat <<-YAML
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		cgroupDriver: cgroupfs
		failCgroupV1: false
		failSwapOn: false
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $STATE/pki/ca.crt}}
		authorization: {mode: Webhook}
		tlsCertFile: $STATE/pki/node-$1-serving.crt
		tlsPrivateKeyFile: $STATE/pki/node-$1-serving.key
		clusterDomain: cluster.local
		clusterDNS: [$DNS]
		resolvConf: $2/resolv.conf
		volumePluginDir: $2/plugins
		imageGCHighThresholdPercent: 100
		imageGCLowThresholdPercent: 99
		evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
		nodeStatusUpdateFrequency: 5s
	YAML
}

proxy_configuration() {
	cat <<-YAML
		apiVersion: kubeproxy.config.k8s.io/v1alpha1
		kind: KubeProxyConfiguration
		mode: nftables
		clusterCIDR: $PODS
		hostnameOverride: node-$1
		clientConnection: {kubeconfig: $STATE/pki/kube-proxy.conf}
		conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
		healthzBindAddress: 127.0.0.1:10256
		metricsBindAddress: 127.0.0.1:10249
	YAML
}

# pod_network N: the addresses of the node's pods, and the routes to them from the other machines.
pod_network() {
	local n=$1 range m
	has_range() { [[ -n $(pod_range "$n") ]]; }
	until_true 90 "node-$n registers and gets addresses for pods" "$STATE/log/kubelet-$n.log" has_range
	range=$(pod_range "$n")
	put "$STATE/machine-$n/cni/10-bridge.conflist" <<-JSON
		{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
		 {"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true, "mtu": 1500,
		  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "$range"}]]}},
		 {"type": "portmap", "capabilities": {"portMappings": true}}]}
	JSON
	for m in $(machines); do
		((m == n)) || on "$m" ip route replace "$range" via "$(address "$n")"
	done
	for m in $(machines); do
		((m == 0 || m == n)) || on "$n" ip route replace "$(pod_range "$m")" via "$(address "$m")" 2>/dev/null || true
	done
	# Machine 0 has no kube-proxy: it routes Services through the first node.
	on 0 ip route replace "$SERVICES" via "$(address 1)"
}

pod_range() { kubectl get node "node-$1" -o 'jsonpath={.spec.podCIDR}' 2>/dev/null; }

node_ready() {
	until_true 90 "node-$1 becomes Ready" "$STATE/log/kubelet-$1.log" kubectl wait --for=condition=Ready "node/node-$1" --timeout=1s
}
