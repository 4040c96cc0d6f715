# What is done to a cloud that runs: an option changes, secrets are searched for, and it is deleted.

# check_option: an option of the scheduler changes while a client asks ten times a second.
check_option() {
	local before after other asked failed started
	before=$(serving)
	from_outside env "OS_CLIENT_CONFIG_FILE=$logins" "$python" "$here/asking.py" "$work/asking" &
	asking=$!
	until [[ -s $work/asking ]]; do
		kill -0 "$asking" 2>/dev/null || die "the client cannot ask the cloud"
		sleep 0.2
	done
	started=${EPOCHREALTIME/./}
	jq '.services.nova.config.filter_scheduler.max_instances_per_host = 40' "$work/cloud.yaml" >"$work/changed.yaml"
	up -f "$work/changed.yaml" --kubeconfig "$KUBECONFIG" >"$work/changed" || die "the change failed: $(tail -n 3 "$work/changed")"
	say "an option of the scheduler was changed, and ready after $(since "$started") s"
	until after=$(serving) && ! grep -q Terminating <<<"$after"; do sleep 1; done
	# The old Pod ends after the new one is ready; requests go on meanwhile.
	sleep 5
	touch "$work/asking.end"
	wait "$asking"
	read -r asked failed < <(tail -n 1 "$work/asking")
	((failed == 0 && asked > 50)) || die "of $asked requests $failed failed: $(head -n 5 "$work/asking.failed")"
	other=$({ diff <(cut -d' ' -f1,2 <<<"$before") <(cut -d' ' -f1,2 <<<"$after") || true; } | sed -n 's/^[<>] \([^ ]*\) .*/\1/p' | sort -u | paste -sd ' ')
	[[ $other == nova-scheduler ]] || die "these have restarted: $other"
	say "only nova-scheduler restarted, and none of $asked requests at ten a second failed"
	up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/changed" || die "the change back failed: $(tail -n 3 "$work/changed")"
	stage "an option changed, and changed back"
}

# check_first_logins: users log in several times at once, for the first time at all, and for the first time of a day, when Keystone
# writes the date of each (MariaDB refuses one of two such writes unless its isolation of snapshots is off).
check_first_logins() {
	logins() { from_outside env "OS_CLIENT_CONFIG_FILE=$logins" "$python" "$here/logins.py" "$1" >"$work/logins"; }
	logins make || die "no users can be made"
	logins first || die "$(<"$work/logins")"
	database "UPDATE user SET last_active_at = DATE_SUB(last_active_at, INTERVAL 1 DAY)"
	[[ $(database 'SELECT COUNT(*) FROM user WHERE last_active_at = CURRENT_DATE') == 0 ]] || die "users are active today in the database"
	logins first || die "$(<"$work/logins")"
	say "$(<"$work/logins"), also when the day had changed"
	logins remove || die "the users cannot be deleted"
	stage "first logins of a day"
}

# database SQL: in that of Keystone, as its administrator.
database() { kubectl exec mariadb-0 -c mariadb -- mariadb --socket /run/mysqld/mysqld.sock --batch --skip-column-names --user mysql keystone --execute "$1"; }

# serving: program, Pod and whether it ends, of each Pod that runs always.
serving() {
	kubectl get pods -o json | jq -r '.items[] | select(.spec.restartPolicy == "Always")
		| "\(.metadata.labels["app.kubernetes.io/name"]) \(.metadata.uid) \(if .metadata.deletionTimestamp then "Terminating" else "" end)"' | sort
}

# check_secrecy: no password or key is in an object that is no Secret, in a log, in an argument or in an environment
# that another user can read.
check_secrecy() {
	local places=$work/places pod container count
	mkdir -p "$places"
	kubectl get secrets openstack-accounts keystone-fernet-keys keystone-credential-keys -o json |
		jq -r '.items[].data[] | . , @base64d' | sort -u >"$work/secrets"
	count=$(wc -l <"$work/secrets")
	((count > 40)) || die "only $count secrets are searched for"
	kubectl get configmaps,services,persistentvolumeclaims,statefulsets,deployments,replicasets,controllerrevisions,jobs,pods,events -o json >"$places/objects"
	"$root/target/tools/kubectl" get openstacks.ferrostack.dev -A -o json >"$places/clouds"
	for pod in $(kubectl get pods -o name); do
		kubectl logs "$pod" --all-containers >"$places/log-${pod#pod/}" 2>/dev/null || true
	done
	"$node" run 1 sh -c 'for each in /proc/[0-9]*/cmdline; do tr "\0" " " <"$each"; echo; done 2>/dev/null' >"$places/arguments"
	grep -q nova-conductor "$places/arguments" || die "the arguments of programs on the node cannot be read"
	cp "$work/up.log" "$places/up"
	grep -q rollout "$places/up" || die "the controller has logged nothing"
	"$root/target/tools/kubectl" get --raw /api/v1/nodes/node-1/proxy/metrics >"$places/metrics-kubelet"
	if grep -rlFf "$work/secrets" "$places" >"$work/found"; then
		die "there is a password or key in: $(sed 's#.*/##' "$work/found" | paste -sd ' ')"
	fi
	say "none of $((count / 2)) passwords and keys is in $(find "$places" -type f | wc -l) files with objects, logs, arguments and metrics"
	stage "secrecy"
}

# check_deletion: `delete --purge-data` leaves nothing in the cluster and on the node.
check_deletion() {
	local left
	"$binary" openstack delete --kubeconfig "$KUBECONFIG" --purge-data --timeout 5m >"$work/deleted" || die "openstack delete failed: $(tail -n 3 "$work/deleted")"
	stage "openstack delete --purge-data"
	for ((tries = 0; tries < 60; tries++)); do
		left=$(left)
		[[ $left ]] || break
		sleep 1
	done
	[[ ! $left ]] || die "after the deletion there are: $left"
	[[ ! -e $logins ]] || die "the file with the login is there after the deletion"
	say "nothing is left in the namespace, no volume, and no file on the node"
	stage "nothing left"
}

# left: what is in the namespace beside what every namespace has, volumes, and their directories.
left() {
	local kinds
	kinds=$(kubectl api-resources --verbs=list --namespaced -o name | grep -v '^events' | paste -sd ,)
	{
		kubectl get "$kinds" -o name --ignore-not-found | grep -vE '^(configmap/kube-root-ca.crt|serviceaccount/default)$' || true
		kubectl get persistentvolumes -o name
		find "$FERROSTACK_NODE_STATE/volumes" -mindepth 1 -maxdepth 1
	} | paste -sd ' '
}
