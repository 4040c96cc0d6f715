# shellcheck shell=bash disable=SC2154
# Scenarios of credentials, names and neighbours.

# credential NAME: makes an application credential, and puts it into the Secret.
credential() {
    local made
    made=$(on demo application credential create "$1" -f json)
    mine create secret generic cloud --dry-run=client -o yaml --from-file=clouds.yaml=<(
        jq -r --arg url "http://$IP:5000/v3" '{clouds: {demo: {auth_type: "v3applicationcredential", region_name: "RegionOne",
            auth: {auth_url: $url, application_credential_id: .id, application_credential_secret: .secret}}}}' <<<"$made"
    ) | mine apply -f - >/dev/null 2>&1
}

scenario_application_credential() {
    credential "$NAME-first"
    make_simple_cluster app <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
X
    ready openstackcluster app
    make_machine app one <<<''
    ready openstackmachine one
    credential "$NAME-second"
    on demo application credential delete "$NAME-first"
    make_machine app two <<<''
    ready openstackmachine two
    say "$SCENARIO: a machine by the second credential after the first one is revoked"
    on demo application credential delete "$NAME-second"
    # The services take a revoked token for up to five minutes: they remember what Keystone said of it. A new login is refused.
    look_again
    make_machine app three <<<''
    says openstackmachine three OpenStackAuthenticationSucceeded False 'pplication'
    say "$SCENARIO: $(field openstackmachine three '.status.conditions[?(@.type=="OpenStackAuthenticationSucceeded")].message' | cut -c1-200)"
    credential "$NAME-third"
    ready openstackmachine three
    say "$SCENARIO: a revoked credential is told, and a new one wakes the machine"
    holds "three servers" '.server | length == 3'
    mine delete cluster app --wait=false >/dev/null
    gone openstackcluster app
    on demo application credential delete "$NAME-third"
}

# Two clusters of one name in two namespaces, in one project: each has its own, and goes without the other.
scenario_one_name() {
    local space
    for space in one-name one-name-too; do
        [[ $space == one-name ]] || make_namespace "$space"
        SPACE=$space make_simple_cluster same <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
managedSecurityGroups: {}
X
        SPACE=$space make_machine same worker <<<''
    done
    for space in one-name one-name-too; do
        SPACE=$space ready openstackcluster same
        SPACE=$space ready openstackmachine worker
    done
    holds "each has a network, a router, groups and a server" '(.network | length) == 2 and (.router | length) == 2 and (.server | length) == 2
        and (.["security group"] | map(select(.name != "default")) | length == 4)'
    whole >"$WORK/before"
    end_namespace one-name
    whole >"$WORK/now"
    # What is left was there before, field by field.
    [[ -z $(comm -13 "$WORK/before" "$WORK/now") ]] || die "the deletion of one changed the other: $(comm -13 "$WORK/before" "$WORK/now" | cut -c1-300)"
    [[ $(grep -c ^server "$WORK/now") == 1 ]] || die "not one server is left"
    say "one-name: the other is as it was"
    SPACE=one-name-too ready openstackcluster same
    end_namespace one-name-too
}
