# What the cloud is asked at the end.

client() {
	OS_CLOUD='' OS_AUTH_TYPE=password OS_AUTH_URL=http://keystone:5000/v3 OS_USERNAME=admin OS_PROJECT_NAME=admin OS_USER_DOMAIN_NAME=Default \
		OS_PROJECT_DOMAIN_NAME=Default OS_REGION_NAME=RegionOne OS_IDENTITY_API_VERSION=3 OS_INTERFACE=internal \
		OS_PASSWORD=$(password identity-admin) inside env -u OS_CLOUD openstack "$@"
}

check_token() {
	[[ $(client token issue -f value -c id) == gAAAA* ]] || die "Keystone gave no token"
	stage "a token"
	client catalog list -f value -c Type >"$work/catalog"
	grep -qx identity "$work/catalog" || die "the catalogue has no identity service: $(<"$work/catalog")"
	say "the catalogue has: $(sort "$work/catalog" | paste -sd ' ')"
}

check_services() {
	local name state token
	head -c 65536 /dev/urandom >"$work/image"
	client image show probe >/dev/null 2>&1 ||
		client image create --disk-format raw --container-format bare --file "$work/image" probe >/dev/null
	state=$(client image show probe -f value -c status)
	[[ $state == active ]] || die "the image is $state"
	client network show probe >/dev/null 2>&1 || client network create probe -f value -c status >/dev/null
	[[ $(client network show probe -f value -c status) == ACTIVE ]] || die "the network is not ACTIVE"
	client compute service list -f value -c Binary -c State >"$work/computes"
	for name in nova-conductor nova-scheduler; do
		state=$(awk -v name="$name" '$1 == name {print $2}' "$work/computes")
		[[ $state == up ]] || die "$name is ${state:-not in the list}"
	done
	token=$(client token issue -f value -c id)
	inside curl -sSf --config - http://placement:8778/resource_providers <<<"header = \"X-Auth-Token: $token\"" >"$work/providers"
	jq -e '.resource_providers | type == "array"' "$work/providers" >/dev/null || die "Placement answers $(<"$work/providers")"
	say "an image is active, a network is ACTIVE, conductor and scheduler are up, Placement answers"
}

# A server becomes ACTIVE in the zone that was asked for, its port too, and it has metadata and a console.
check_server() {
	local host state zones url
	zones=$(client availability zone list --compute -f value -c 'Zone Name' | sort | paste -sd ' ')
	[[ $zones == 'az1 az2 internal' ]] || die "the zones are $zones"
	client flavor show tiny >/dev/null 2>&1 || client flavor create --ram 64 --disk 1 --vcpus 1 tiny >/dev/null
	client subnet show probe >/dev/null 2>&1 || client subnet create --network probe --subnet-range 10.9.0.0/24 probe >/dev/null
	client server create --flavor tiny --image probe --network probe --availability-zone az2 --wait probe -f json >"$work/server" || true
	state=$(jq -r .status "$work/server")
	[[ $state == ACTIVE ]] || die "the server is ${state:-not there}: $(client server show probe -f value -c fault)"
	host=$(jq -r '."OS-EXT-SRV-ATTR:host"' "$work/server")
	# Zones get hypervisors in turns.
	[[ $host == nova-compute-*[13579] ]] || die "the server of zone az2 is on $host"
	await_port
	stage "a server"
	url=$(client console url show --novnc probe -f value -c url)
	[[ $url == "https://$public:6080/vnc_lite.html?path="* ]] || die "the console is at $url"
	restart_hypervisor "$host"
	# Both are answered before they are done.
	client server stop probe
	await_server SHUTOFF
	client server start probe
	await_server ACTIVE
	client server delete --wait probe
	inside curl -sSf http://nova-metadata:8775/ >"$work/metadata"
	grep -qx latest "$work/metadata" || die "the metadata API answers $(<"$work/metadata")"
	say "a server was ACTIVE in its zone, with a port and a console, also after its hypervisor had restarted"
}

# await_server STATUS: the server has this status.
await_server() {
	local patience=$((SECONDS + 60)) status
	until status=$(client server show probe -f value -c status) && [[ $status == "$1" ]]; do
		((SECONDS < patience)) || die "the server is ${status:-not there}, and not $1"
		sleep 1
	done
}

# The stand-in for ovn-controller plugs a port a second after its server has started.
await_port() {
	local patience=$((SECONDS + 30)) state
	until state=$(client port list --server probe -f value -c Status) && [[ $state == ACTIVE ]]; do
		((SECONDS < patience)) || die "the port is ${state:-not there}"
		sleep 1
	done
}

# A hypervisor comes back by itself, as the same node and with its guests.
restart_hypervisor() {
	local pod=$1 before now patience=$((SECONDS + 180))
	before=$(kubectl get pod "$pod" -o 'jsonpath={.metadata.uid}')
	kubectl delete pod "$pod" >/dev/null
	until now=$(kubectl get pod "$pod" -o json 2>/dev/null) &&
		jq -e --arg uid "$before" '.metadata.uid != $uid and any(.status.conditions[]?; .type == "Ready" and .status == "True")' <<<"$now" >/dev/null; do
		((SECONDS < patience)) || die "$pod is not ready again"
		sleep 1
	done
}

# from_outside COMMAND…: where users outside of the cluster are. On the cloud of the controller that is this machine, to
# which the ports of the cloud are forwarded.
from_outside() { if [[ $controller ]]; then "$@"; else inside "$@"; fi; }
outside() { from_outside env "OS_CLIENT_CONFIG_FILE=$logins" openstack --os-cloud cloud "$@"; }

# Users outside find every API by its public endpoint, with a certificate of the cloud's authority.
check_edge() {
	local urls
	if [[ ! $controller ]]; then
		kubectl get secret cloud-admin -o json | jq -er '.data["clouds.yaml"] | @base64d' |
			sed "s#/etc/openstack/#$(dirname "$logins")/#" >"$logins"
		kubectl get secret cloud-admin -o json | jq -er '.data["ca.crt"] | @base64d' >"$authority"
	fi
	[[ $(stat -c %a "$logins") == 600 ]] || die "$logins is readable for others"
	urls=$(outside endpoint list --interface public -f value -c URL)
	[[ $(grep -c "^https://$public:" <<<"$urls") == 5 && $(wc -l <<<"$urls") == 5 ]] || die "the public endpoints are ${urls//$'\n'/, }"
	outside server list >/dev/null
	outside network list >/dev/null
	outside image save --file "$work/saved" probe
	cmp -s "$work/saved" <(client image save probe) || die "images differ at the edge"
	[[ $(stat -c %s "$work/saved") == 65536 ]] || die "the image has $(stat -c %s "$work/saved") bytes"
	from_outside curl -sSf --cacert "$authority" "https://$public:6080/vnc_lite.html" >"$work/console"
	grep -q noVNC "$work/console" || die "the page of consoles is not at the edge"
	! from_outside curl -sSf "https://$public:5000/v3" >/dev/null 2>&1 || die "the certificate of the edge is trusted without its authority"
	say "the edge has every public endpoint, by TLS"
	check_user_outside
	stage "from outside"
}

# Who knows no more than clouds.yaml makes an image, a network and a server with a console, and deletes them.
check_user_outside() {
	local state url token
	[[ $(outside token issue -f value -c id) == gAAAA* ]] || die "Keystone gave no token at the edge"
	outside image create --disk-format raw --container-format bare --file "$work/saved" outside >/dev/null
	state=$(outside image show outside -f value -c status)
	[[ $state == active ]] || die "the image that came through the edge is $state"
	outside network create outside -f value -c status >/dev/null
	outside subnet create --network outside --subnet-range 10.8.0.0/24 outside >/dev/null
	state=$(outside server create --flavor tiny --image outside --network outside --wait outside -f value -c status || true)
	[[ $state == *ACTIVE ]] || die "the server that was made through the edge is ${state:-not there}: $(outside server show outside -f value -c fault)"
	url=$(outside console url show --novnc outside -f value -c url)
	from_outside curl -sSf --cacert "$authority" "$url" >"$work/console"
	grep -q noVNC "$work/console" || die "there is no page of a console at $url"
	check_dashboard
	# Nobody listens behind the console of an imaginary guest: the proxy answers, and then closes the connection.
	token=${url##*%3D}
	from_outside curl -sS --include --no-buffer --http1.1 --max-time 10 --cacert "$authority" -H 'Connection: Upgrade' -H 'Upgrade: websocket' \
		-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' -H "Origin: https://$public:6080" \
		"https://$public:6080/?token=$token" >"$work/console" 2>/dev/null || true
	grep -aq '^HTTP/1.1 101 ' "$work/console" || die "the console answers $(head -c 200 "$work/console")"
	outside server delete --wait outside
	[[ -z $(outside server list --name outside -f value -c ID) ]] || die "the server is there after its deletion"
	outside network delete outside
	outside image delete outside
	say "by the edge alone a server was made, had a console, and was deleted"
}

# A browser's way to the list of servers: the page of the login, its form, and the list, with the server that is there.
check_dashboard() {
	local jar=$work/cookies page=$work/page site=https://$public id status style
	browse() { from_outside curl -sS --cacert "$authority" --cookie "$jar" --cookie-jar "$jar" --output "$page" --write-out '%{http_code} %{redirect_url}' "$@"; }
	hidden() { sed -n "s/.*<input type=\"hidden\" name=\"$1\" value=\"\([^\"]*\)\".*/\1/p" "$page" | head -n 1; }
	status=$(browse "$site/auth/login/")
	[[ $status == '200 ' ]] || die "the page of the dashboard's login answers $status: $(head -c 300 "$page")"
	style=$(grep -o '/static/dashboard/css/[^"]*\.css' "$page" | head -n 1 || true)
	from_outside curl -sSf --cacert "$authority" --head "$site$style" >"$work/style"
	grep -qi '^content-type: text/css' "$work/style" || die "the dashboard has no style at ${style:-any path}"
	printf 'csrfmiddlewaretoken=%s&region=%s&username=admin&password=%s' "$(hidden csrfmiddlewaretoken)" "$(hidden region)" "$(password identity-admin)" >"$work/form"
	status=$(browse --referer "$site/auth/login/" --data "@$work/form" "$site/auth/login/")
	[[ $status == "302 $site/"* ]] || die "the login at the dashboard answers $status: $(grep -A 3 -i 'alert\|error' "$page" | head -c 500)"
	status=$(browse "$site/project/instances/")
	id=$(outside server show outside -f value -c id)
	[[ $status == '200 ' ]] && grep -q "/project/instances/$id/" "$page" || die "the dashboard's list of servers answers $status, without $id"
	# Without the cookie of the session there is only the login.
	status=$(from_outside curl -sS --cacert "$authority" --output "$page" --write-out '%{http_code} %{redirect_url}' "$site/project/instances/")
	[[ $status == "302 $site/auth/login/?next=/project/instances/" ]] || die "without a login the dashboard answers $status"
	say "at the dashboard the administrator logs in, and sees the server"
	picture
}

# picture: the same by a browser, with a picture of the list in target/horizon.png.
picture() {
	local key
	if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
		say "there is no browser, so that no picture is made: apt-get install chromium chromium-driver"
		return
	fi
	# The browser trusts the key of a certificate that is verified here.
	from_outside openssl s_client -connect "$public:443" -CAfile "$authority" -verify_ip "$public" -verify_return_error </dev/null >"$work/served" 2>"$work/verified" ||
		die "the certificate of the dashboard is not trusted: $(tail -n 1 "$work/verified")"
	key=$(openssl x509 -in "$work/served" -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64)
	password identity-admin >"$work/password"
	from_outside "$python" "$here/browser.py" "https://$public" "$key" "$work/password" outside "$root/target/horizon.png" || die "the browser failed"
	say "a browser logs in, and its list has the server: target/horizon.png has $(($(stat -c %s "$root/target/horizon.png") / 1000)) kB"
}

# Memory of the processes in Pods that no file backs. Those of the node itself are in no Pod.
memory() {
	local kilobytes
	# A process may end meanwhile.
	kilobytes=$("$node" run 1 sh -c 'for each in /proc/[0-9]*; do
		! grep -q kubepods "$each/cgroup" || sed -n "s/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p" "$each/status"
	done 2>/dev/null; true' | awk '{sum += $1} END {print sum + 0}')
	printf 'memory of all Pods %d MB\n' $((kilobytes * 1024 / 1000000))
}

# No container has restarted, and no task needed a second Pod.
no_restarts() {
	kubectl get pods -o json >"$work/pods.json"
	local restarted
	restarted=$(jq -r '.items[] | .metadata.name as $name | select(.status.phase == "Failed" or any(.status.containerStatuses[]?; .restartCount > 0)) | $name' "$work/pods.json")
	[[ -z $restarted ]] || die "these have failed or restarted: ${restarted//$'\n'/, }"
	say "$(jq '[.items[] | select(.status.phase == "Running")] | length' "$work/pods.json") Pods run, and no container has restarted"
}

# report_failure: what the Pods that are not ready say.
report_failure() {
	local pod
	[[ -s $KUBECONFIG ]] || return 0
	kubectl get pods -o wide >&2
	for pod in $(kubectl get pods -o json | jq -r '.items[] | select(.status.phase != "Succeeded") | select(any(.status.containerStatuses[]?; .ready | not) or .status.phase == "Pending") | .metadata.name'); do
		printf '\n== %s\n' "$pod" >&2
		kubectl get events --field-selector "involvedObject.name=$pod" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}' | tail -n 5 >&2
		kubectl logs "$pod" --tail=15 >&2 2>/dev/null || true
	done
}
