# Objects of a management cluster by `up`, and the resources that the provider makes of them. For scripts that have sourced
# project.sh. Each scenario has a namespace with credentials in the Secret `cloud`.

SCENARIO=
WAIT=$((90 * PATIENCE))   # seconds that a step may take

# management: `up` without any cluster.
management() {
    begin up "$BINARY" --log warn up --cloud demo -f "$HERE/provider-scenarios/management.yaml"
    await "$WAIT" up as_admin get --raw /readyz
    await "$WAIT" up as_admin get openstackclusters -A
}

# The provider looks at the whole cloud when it starts, and at rest each five minutes.
look_again() {
    local pid=${PIDS[-1]}
    kill "$pid"
    wait "$pid" || die "up ended badly: $(tail -3 "$WORK/up.log")"
    unset 'PIDS[-1]'
    begin up "$BINARY" --log warn up --cloud demo
    await "$WAIT" up as_admin get openstackclusters -A
}

mine() { as_admin -n "${SPACE:-$SCENARIO}" "$@"; }

# The file has the administrator's credentials, too.
clouds_of_project() { echo clouds: && sed -n '/^  demo:/,$p' "$WORK/clouds.yaml"; }

make_namespace() {
    as_admin create namespace "$1" >/dev/null
    as_admin create secret generic cloud -n "$1" --from-file=clouds.yaml=<(clouds_of_project) >/dev/null
    as_admin create secret generic boot -n "$1" --from-literal=value='#cloud-config' --from-literal=format=cloud-config >/dev/null
}

# Deletes all objects of a namespace, and waits until they are gone.
end_namespace() {
    local from=$SECONDS
    as_admin -n "$1" delete clusters,machines,openstackservers,openstackfloatingippools --all --timeout "$((2 * WAIT))s" >"$WORK/deleted" 2>&1 ||
        die "$1: not deleted: $(tail -3 "$WORK/deleted"); $(complaints "$1")"
    as_admin delete namespace "$1" --ignore-not-found --wait=false >/dev/null
    say "$1: deleted after $((SECONDS - from)) s"
}

# Every condition of the namespace that is not as it should be.
complaints() {
    as_admin -n "$1" get openstackclusters,openstackmachines,openstackservers,openstackfloatingippools -o json |
        jq -r '.items[] | .kind + "/" + .metadata.name as $who | .status.conditions[]? | select(.status != "True" or .type == "Deleting")
            | "\($who) \(.type)=\(.status) \(.reason): \(.message)"' | head -12
}

make() { mine apply -f - >"$WORK/applied" 2>&1 || die "$SCENARIO: not accepted: $(cat "$WORK/applied")"; }

# make_cluster NAME: a Cluster with an OpenStackCluster, whose spec without the credentials is on stdin. PAUSED may be set for it.
make_cluster() {
    { cat <<X && sed 's/^/  /'; } | make
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: $1}
spec:
  paused: ${PAUSED:-false}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackCluster, name: $1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: OpenStackCluster
metadata:
  name: $1
  labels: {cluster.x-k8s.io/cluster-name: $1}
spec:
  identityRef: {name: cloud, cloudName: demo}
X
}

# A cluster whose API server is elsewhere, so that it needs no load balancer, which takes the longest here.
make_simple_cluster() { # NAME; what its spec has besides is on stdin
    { cat <<X && cat; } | make_cluster "$1"
apiServer: {enableFloatingIP: false}
controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}
X
}

# make_machine CLUSTER NAME [ROLE-LABELS]: a Machine with an OpenStackMachine, whose spec is on stdin, but for image and flavor.
# ZONE, FLAVOR, IMAGE and ANNOTATIONS may be set for it.
make_machine() {
    { cat <<X && sed 's/^/  /'; } | make
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: $2
  labels: {cluster.x-k8s.io/cluster-name: $1${3:+, $3}}
spec:
  clusterName: $1
  version: v1.34.2
  ${ZONE:+failureDomain: $ZONE}
  bootstrap: {dataSecretName: boot}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackMachine, name: $2}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: OpenStackMachine
metadata:
  name: $2
  labels: {cluster.x-k8s.io/cluster-name: $1${3:+, $3}}
  annotations: {${ANNOTATIONS:-}}
spec:
  image: {filter: {name: ${IMAGE:-ubuntu-24.04-kubernetes}}}
  flavor: {filter: {name: ${FLAVOR:-m1.tiny}}}
X
}
# The role of a machine of the control plane.
# shellcheck disable=SC2034
CONTROL_PLANE='cluster.x-k8s.io/control-plane: ""'

# ready KIND NAME ...
ready() {
    local kind=$1 name
    shift
    for name; do says "$kind" "$name" Ready True ''; done
}

# says KIND NAME CONDITION STATUS TEXT: waits until a condition has this status and text.
says() {
    local limit=$((SECONDS + 2 * WAIT)) is
    while :; do
        is=$(mine get "$1" "$2" -o "jsonpath={.status.conditions[?(@.type==\"$3\")].status} {.status.conditions[?(@.type==\"$3\")].message}" 2>"$WORK/stderr") || is=
        [[ $is != "$4 "*"$5"* ]] || return 0
        ((SECONDS < limit)) || die "$SCENARIO: $1 $2 does not say $3=$4 '$5', but '$is'; $(complaints "${SPACE:-$SCENARIO}")"
        sleep 0.5
    done
}
gone() { # KIND NAME
    mine wait --for=delete "$1/$2" --timeout "$((2 * WAIT))s" >/dev/null 2>&1 || die "$SCENARIO: $1 $2 is not deleted: $(complaints "${SPACE:-$SCENARIO}")"
}
field() { mine get "$1" "$2" -o "jsonpath={$3}"; } # KIND NAME PATH

# cloud JQ ...: the answer of a filter over all resources of the project, as inventory.py prints them.
cloud() {
    python3 "$HERE/python/inventory.py" demo json >"$WORK/cloud.json" 2>"$WORK/stderr" || die "listing the project failed: $(tail -1 "$WORK/stderr")"
    jq -r "$@" "$WORK/cloud.json"
}

# holds WHAT JQ ...: waits until a filter over all resources of the project is true.
holds() {
    local what=$1 limit=$((SECONDS + 2 * WAIT))
    shift
    until [[ $(cloud "$@" 2>&1) == true ]]; do
        ((SECONDS < limit)) || die "$SCENARIO: not so: $what ($*: $(jq -r "$@" "$WORK/cloud.json" 2>&1); $(complaints "${SPACE:-$SCENARIO}"))"
        sleep 1
    done
    say "$SCENARIO: $what"
}
