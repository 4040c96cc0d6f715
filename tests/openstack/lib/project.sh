# A project of its own on the real cloud, with programs that end with the script. For scripts that have sourced settings.sh and
# processes.sh and set BINARY. `finish` is for the trap at EXIT.

NAME=e2e-$$
WORK=$(mktemp -d "$STATE/$NAME.XXXX")
export OS_CLIENT_CONFIG_FILE=$WORK/clouds.yaml
export FERROSTACK_DATA_DIR=$WORK/data
PATIENCE=${FERROSTACK_PATIENCE:-1}
PIDS=()
INSIDE=()      # the prefix of commands in the network namespace, once it exists
NAMESPACE=
PROJECT=none

on() { # CLOUD arguments of openstack ...
    local cloud=$1
    shift
    openstack --os-cloud "$cloud" "$@" 2>"$WORK/stderr" || die "openstack $*: $(tail -3 "$WORK/stderr")"
}

# A separate project, so that concurrent changes are not reported as leaks. Its cloud is called demo.
own_project() {
    local secret
    secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    cp "$CLOUDS" "$WORK/clouds.yaml"
    PROJECT=$(on admin project create "$NAME" -f value -c id)
    on admin user create "$NAME" --password "$secret" -f value -c id >/dev/null
    on admin role add --project "$NAME" --user "$NAME" member
    cat >"$WORK/clouds.yaml" <<X
clouds:
$(sed -n '/^  admin:/,/^  [a-z-]*:$/{/^  admin:/p;/^  [a-z-]*:$/!p}' "$CLOUDS")
  demo:
    auth:
      auth_url: http://$IP:5000/v3
      username: $NAME
      password: $secret
      project_name: $NAME
      user_domain_name: Default
      project_domain_name: Default
    region_name: RegionOne
    identity_api_version: 3
X
}

finish() {
    local status=$? pid group
    trap - EXIT
    set +e
    # Each leads a group of its own.
    for pid in "${PIDS[@]}"; do kill -- "-$pid" 2>/dev/null; done
    wait
    {
        # After a failure there may be any resources; without the project in Keystone they could not be deleted.
        if [[ $status != 0 ]]; then scrub; fi
        for group in $(openstack --os-cloud admin security group list --project "$PROJECT" -f value -c ID); do
            openstack --os-cloud admin security group delete "$group"
        done
        if [[ -n $NAMESPACE ]]; then
            openstack --os-cloud admin network delete "$NAME-outside"
            ip netns delete "$NAMESPACE"
        fi
        openstack --os-cloud admin user delete "$NAME"
        openstack --os-cloud admin project delete "$NAME"
    } >/dev/null 2>&1
    if [[ $status == 0 ]]; then
        rm -rf "$WORK"
    else
        echo "$PROGRAM: what the programs said is in $WORK" >&2
        rm -f "$WORK/clouds.yaml"
        rm -rf "$WORK/data" "$WORK/guests"
    fi
    exit $status
}

scrub() {
    local kind ids id
    for kind in "loadbalancer:--cascade --wait" server:--wait "floating ip:" volume:; do
        # shellcheck disable=SC2086
        ids=$(openstack --os-cloud demo ${kind%%:*} list -f value -c ID -c id)
        # shellcheck disable=SC2086
        for id in $ids; do openstack --os-cloud demo ${kind%%:*} delete ${kind#*:} "$id"; done
    done
    for id in $(openstack --os-cloud demo network trunk list -f value -c ID); do openstack --os-cloud demo network trunk delete "$id"; done
    for id in $(openstack --os-cloud demo port list -f value -c ID); do openstack --os-cloud demo port delete "$id"; done
    for id in $(openstack --os-cloud demo server group list -f value -c ID); do openstack --os-cloud demo server group delete "$id"; done
    for id in $(openstack --os-cloud demo router list -f value -c ID); do
        for kind in $(openstack --os-cloud demo subnet list --no-share -f value -c ID); do
            openstack --os-cloud demo router remove subnet "$id" "$kind"
        done
        openstack --os-cloud demo router delete "$id"
    done
    for id in $(openstack --os-cloud demo network list --internal -f value -c ID); do
        openstack --os-cloud demo network delete "$id"
    done
    for id in $(openstack --os-cloud demo subnet pool list --no-share -f value -c ID); do openstack --os-cloud demo subnet pool delete "$id"; done
}

# Neutron creates the default security group with the first request for the project's groups.
inventory() { python3 "$HERE/python/inventory.py" demo 2>"$WORK/stderr" || die "listing the project failed: $(tail -1 "$WORK/stderr")"; }

begin() { # NAME COMMAND ...: runs in the background until this script ends
    local log=$WORK/$1.log
    shift
    setsid "$@" >"$log" 2>&1 </dev/null &
    PIDS+=($!)
}

ferrostack() { "${INSIDE[@]}" "$BINARY" "$@"; }

as_admin() { "${INSIDE[@]}" "$KUBECTL" --kubeconfig "$FERROSTACK_DATA_DIR/kubeconfig" --request-timeout=10s "$@"; }
whole() { python3 "$HERE/python/inventory.py" demo whole 2>"$WORK/stderr" || die "listing the project failed: $(tail -1 "$WORK/stderr")"; }
