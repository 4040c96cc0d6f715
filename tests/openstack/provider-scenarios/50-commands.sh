# shellcheck shell=bash disable=SC2154
# Scenarios of the commands that look at a cloud.

# ends STATUS COMMAND ...: the output is in the file said.
ends() {
    local want=$1 status=0
    shift
    ferrostack "$@" >"$WORK/said" 2>&1 || status=$?
    [[ $status == "$want" ]] || die "$SCENARIO: $1 ended with $status in place of $want: $(tail -12 "$WORK/said")"
}
told() { grep -q -- "$1" "$WORK/said" || die "$SCENARIO: nothing is said of $1: $(cat "$WORK/said")"; }

planned() { # SUBNET: the manifest of a cluster with a worker
    cat <<X
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: plan}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackCluster, name: plan}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: OpenStackCluster
metadata:
  name: plan
  labels: {cluster.x-k8s.io/cluster-name: plan}
spec:
  identityRef: {name: cloud, cloudName: demo}
  externalNetwork: {filter: {name: public}}
  apiServer: {enableFloatingIP: false}
  controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}
  managedSecurityGroups: {$1}
  managedSubnets: [{cidr: 10.6.0.0/24}]
X
}

scenario_plan() {
    planned '' >"$WORK/plan.yaml"
    on admin quota set --networks 0 "$PROJECT"
    ends 1 plan -n plan -f "$WORK/plan.yaml"
    told network/network
    on admin quota set --networks 100 "$PROJECT"
    ends 2 plan -n plan -f "$WORK/plan.yaml"
    say "plan: $(grep -c '^create' "$WORK/said") steps for a new cluster, and a quota without room"
    holds "nothing was changed" '.network == [] and .router == []'
    make <"$WORK/plan.yaml"
    ready openstackcluster plan
    make_machine plan worker <<<''
    ready openstackmachine worker
    ends 0 plan cluster plan -n plan
    planned 'allowAllInClusterTraffic: true' >"$WORK/plan.yaml"
    ends 2 plan -n plan -f "$WORK/plan.yaml"
    say "plan: $(grep -cE '^(create|change|replace|delete)' "$WORK/said") steps for other rules"
    make <"$WORK/plan.yaml"
    holds "the rules are others" '[.["security group"][] | select(.name | endswith("worker")) | .security_group_rules[] | select(.direction == "ingress" and .protocol == null)] | length > 0'
    ready openstackcluster plan
    ends 0 plan cluster plan -n plan
    say "plan: nothing to do for what was applied"
}

scenario_audit() {
    local server
    make_simple_cluster audit <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
managedSecurityGroups: {}
X
    ready openstackcluster audit
    make_machine audit kept <<<''
    make_machine audit lost <<<'rootVolume: {sizeGiB: 2}'
    ready openstackmachine kept lost
    ends 0 audit --cloud demo
    say "audit: nothing is found where nothing is wrong"
    # An object that goes by force leaves all that is in the cloud.
    server=$(cloud '.server[] | select(.name == "lost") | .id')
    mine patch cluster audit --type merge -p '{"spec":{"paused":true}}' >/dev/null
    says openstackmachine lost Paused True ''
    mine patch machine lost --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    mine patch openstackmachine lost --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    mine delete machine,openstackmachine lost --ignore-not-found --timeout 30s >/dev/null
    on demo server delete "$(cloud '.server[] | select(.name == "kept") | .id')" --wait
    ends 2 audit --cloud demo -o json
    told "$server"
    ends 2 audit --cloud demo
    say "audit: $(grep -c . "$WORK/said") lines: $(grep -iE 'lost|kept' "$WORK/said" | cut -c1-100 | tr '\n' ';')"
    ends 2 audit --cloud demo --delete --yes
    holds "server, port and volume without an owner are deleted" '.server == [] and .volume == [] and ([.port[] | select(.name | startswith("lost"))] == []) and (.network | length) == 1'
    mine patch cluster audit --type merge -p '{"spec":{"paused":false}}' >/dev/null
}
