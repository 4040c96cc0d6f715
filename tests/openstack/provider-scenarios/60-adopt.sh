# shellcheck shell=bash disable=SC2154
# A cluster of cluster-api-provider-openstack is taken over: what that program leaves in cloud and objects is made by
# crates/testbed/examples/capo.rs, from facts about it.

# Every field of every resource but the marks: descriptions, tags of ours, and addresses of the metadata port, which Neutron makes.
without_marks() {
    whole | python3 -c '
import json, sys
for line in sys.stdin:
    head, fields = line.split(" {", 1)
    fields = json.loads("{" + fields)
    fields.pop("description", None)
    for key in ("tags", "tag"):
        if isinstance(fields.get(key), list):
            fields[key] = sorted(tag for tag in fields[key] if not tag.startswith("ferrostack:"))
    print(head, json.dumps(fields, sort_keys=True))'
}
differs() { # FILE WHAT
    local now=$WORK/differs
    without_marks >"$now"
    cmp -s "$1" "$now" || die "adopt: $2: $(diff "$1" "$now" | cut -c1-700 | head -6)"
}

scenario_adopt() {
    local capo=${FERROSTACK_CAPO:-$ROOT/target/debug/examples/capo} name
    [[ -x $capo ]] || (cd "$ROOT" && cargo build -q -p ferrostack-testbed --example capo) || die "the example capo is not built"
    SPACE=default
    mine create secret generic cloud --from-file=clouds.yaml=<(clouds_of_project) >/dev/null
    mine create secret generic boot --from-literal=value='#cloud-config' --from-literal=format=cloud-config >/dev/null
    PAUSED=true make_cluster adopt <<X
externalNetwork: {filter: {name: public}}
managedSubnets: [{cidr: 10.6.0.0/24, dnsNameservers: [9.9.9.9]}]
managedSecurityGroups:
  clusterNodesSecurityGroupRules:
  - {name: bgp, direction: ingress, etherType: IPv4, protocol: tcp, portRangeMin: 179, portRangeMax: 179, remoteManagedGroups: [controlplane, worker]}
  - {name: ipip, direction: ingress, etherType: IPv4, protocol: "4", remoteManagedGroups: [controlplane, worker]}
tags: [of-cluster]
apiServer: {managedLoadBalancer: {}}
bastion: {spec: {flavor: {filter: {name: m1.small}}, image: {filter: {name: ubuntu-24.04}}}}
X
    FLAVOR=m1.small IMAGE=ubuntu-24.04 make_machine adopt server "$CONTROL_PLANE" <<<'rootVolume: {sizeGiB: 20}'
    FLAVOR=m1.small IMAGE=ubuntu-24.04 make_machine adopt worker <<X
trunk: true
tags: [of-machine]
X
    KUBECONFIG=$FERROSTACK_DATA_DIR/kubeconfig "$capo" adopt demo >"$WORK/capo.log" 2>&1 || die "adopt: nothing is made: $(tail -3 "$WORK/capo.log")"
    holds "two machines, a bastion and a load balancer of the Go provider" '(.server | length == 3 and all(.status == "ACTIVE")) and (.["load balancer"] | length) == 1'
    without_marks >"$WORK/before"
    mine patch cluster adopt --type merge -p '{"spec":{"paused":false}}' >/dev/null
    says openstackcluster adopt Ready False 'ferrostack adopt cluster adopt -n default --dry-run'
    ferrostack adopt cluster adopt -n default --dry-run >"$WORK/dry-run" 2>&1 || die "adopt: --dry-run: $(cat "$WORK/dry-run")"
    differs "$WORK/before" "changed without being asked"
    say "adopt: left alone; $(wc -l <"$WORK/dry-run") lines of --dry-run"
    ferrostack adopt cluster adopt -n default --timeout "$((2 * WAIT))s" >"$WORK/adopted" 2>&1 || die "adopt: $(cat "$WORK/adopted")"
    ready openstackcluster adopt
    ready openstackmachine server worker
    says openstackcluster adopt BastionReady True ''
    differs "$WORK/before" "the adoption changed more than marks"
    holds "each server, port, network, router, group, load balancer and floating IP has the mark" '
        all(.server[]; .tags | any(startswith("ferrostack:cluster=")))
        and all((.network + .subnet + .router + .["load balancer"] + .["floating ip"] + (.["security group"] | map(select(.name != "default"))))[]; .description | endswith("]"))
        and all(.port[] | select(.device_owner | startswith("compute:")); .description | endswith("]"))'
    whole >"$WORK/marked"
    sleep 45
    whole | cmp -s "$WORK/marked" - || die "adopt: written at rest: $(whole | diff "$WORK/marked" - | cut -c1-400 | head -4)"
    ferrostack plan cluster adopt -n default >"$WORK/plan" 2>&1 || die "adopt: something is planned: $(cat "$WORK/plan")"
    differs "$WORK/before" "what the Go provider reads is not as it was"
    say "adopt: nothing but marks is different, nothing is planned, and nothing is written at rest"
    FLAVOR=m1.small IMAGE=ubuntu-24.04 make_machine adopt other <<<''
    ready openstackmachine other
    mine delete machine worker --wait=false >/dev/null
    gone openstackmachine worker
    gone openstackserver worker
    holds "a machine comes and one goes, with its trunk and the object of the Go provider" '(.server | map(.name) | sort == ["adopt-bastion", "other", "server"]) and .trunk == []'
    mine delete cluster adopt --wait=false >/dev/null
    for name in openstackserver/server openstackserver/adopt-bastion openstackcluster/adopt; do gone "${name%/*}" "${name#*/}"; done
    mine delete secret cloud boot >/dev/null
    SPACE=
}
