# Certificates and kubeconfigs: one CA, and a client certificate for each component.

# certificate NAME SUBJECT EXTENSIONS
certificate() {
	[[ -s $1.crt ]] && openssl x509 -checkend 86400 -noout -in "$1.crt" >/dev/null && return
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -subj "$2" 2>/dev/null |
		openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile <(printf '%b' "$3") -out "$1.crt" 2>/dev/null
	chmod 600 "$1.key"
}

# kubeconfig NAME SERVER: prints a kubeconfig with the client certificate NAME.
kubeconfig() {
	cat <<-YAML
		apiVersion: v1
		kind: Config
		clusters: [{name: node, cluster: {server: "$2", certificate-authority: $STATE/pki/ca.crt}}]
		users: [{name: $1, user: {client-certificate: $STATE/pki/$1.crt, client-key: $STATE/pki/$1.key}}]
		contexts: [{name: node, context: {cluster: node, user: $1}}]
		current-context: node
	YAML
}

# certificates NODES
certificates() {
	local n user names="DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
	pushd "$STATE/pki" >/dev/null
	if [[ ! -s ca.crt ]]; then
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.crt -days 365 -subj /CN=kubernetes 2>/dev/null
	fi
	if [[ ! -s sa.pub ]]; then
		openssl genrsa -out sa.key 2048 2>/dev/null
		openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
	fi
	certificate apiserver /CN=kube-apiserver "subjectAltName=IP:127.0.0.1,IP:$(address 0),IP:10.96.0.1,$names"
	certificate apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client extendedKeyUsage=clientAuth
	certificate front-proxy-client /CN=front-proxy-client extendedKeyUsage=clientAuth
	certificate admin /O=system:masters/CN=kubernetes-admin extendedKeyUsage=clientAuth
	for user in kube-controller-manager kube-scheduler kube-proxy local-volumes; do
		certificate "$user" "/CN=system:$user" extendedKeyUsage=clientAuth
		kubeconfig "$user" "$API" | put "$user.conf"
	done
	for ((n = 1; n <= $1; n++)); do
		certificate "node-$n" "/O=system:nodes/CN=system:node:node-$n" extendedKeyUsage=clientAuth
		certificate "node-$n-serving" "/O=system:nodes/CN=system:node:node-$n" "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:node-$n,IP:$(address "$n")"
		kubeconfig "node-$n" "$API" | put "node-$n.conf"
	done
	popd >/dev/null
	(umask 077 && kubeconfig admin "https://127.0.0.1:$PORT" | put "$STATE/kubeconfig")
}
