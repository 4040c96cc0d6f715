//! Subnet pools and address scopes, as Neutron serves them.

use serde_json::json;

use super::*;

const POOLS: &str = "/network/v2.0/subnetpools";
const SCOPES: &str = "/network/v2.0/address-scopes";
const SUBNETS: &str = "/network/v2.0/subnets";

async fn both() -> (Cloud, Client, Client) {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    (cloud, client, admin)
}

async fn pool(client: &Client, fields: Value) -> Value {
    let mut pool = json!({"name": "pool", "prefixes": ["10.10.0.0/24"]});
    for (name, value) in fields.as_object().unwrap() {
        pool[name] = value.clone();
    }
    client.make(POOLS, json!({"subnetpool": pool})).await
}

async fn network(client: &Client) -> String {
    let network = client
        .make("/network/v2.0/networks", json!({"network": {}}))
        .await;
    id(&network)
}

async fn subnet(client: &Client, network: &str, fields: Value) -> Got {
    let mut subnet = json!({"network_id": network, "ip_version": 4});
    for (name, value) in fields.as_object().unwrap() {
        subnet[name] = value.clone();
    }
    client.post(SUBNETS, json!({"subnet": subnet})).await
}

fn verdict(got: &Got) -> (u16, &str) {
    let kind = got.body["NeutronError"]["type"].as_str();
    (got.status, kind.unwrap_or_default())
}

#[tokio::test]
async fn a_subnet_of_a_pool_gets_the_first_prefix_of_the_smallest_free_block() {
    let (_cloud, client) = demo().await;
    let allocator = pool(&client, json!({"default_prefixlen": 26})).await;
    // Lengths are texts in answers, as those of Neutron.
    assert_eq!(allocator["default_prefixlen"], "26");
    assert_eq!(
        (&allocator["min_prefixlen"], &allocator["max_prefixlen"]),
        (&json!("8"), &json!("32"))
    );
    assert_eq!(
        (&allocator["ip_version"], &allocator["address_scope_id"]),
        (&json!(4), &Value::Null)
    );
    let from = json!({"subnetpool_id": allocator["id"]});
    let cidr = async |fields: Value| {
        let got = subnet(&client, &network(&client).await, fields).await;
        assert_eq!(got.status, 201, "{}", got.text);
        let subnet = &got.body["subnet"];
        assert_eq!(subnet["subnetpool_id"], allocator["id"]);
        assert!(subnet.get("prefixlen").is_none());
        subnet["cidr"].as_str().unwrap().to_owned()
    };
    assert_eq!(cidr(from.clone()).await, "10.10.0.0/26");
    let with = |name: &str, value: Value| {
        let mut fields = from.clone();
        fields[name] = value;
        fields
    };
    assert_eq!(cidr(with("prefixlen", json!(28))).await, "10.10.0.64/28");
    assert_eq!(cidr(with("prefixlen", json!(28))).await, "10.10.0.80/28");
    assert_eq!(
        cidr(with("cidr", json!("10.10.0.128/26"))).await,
        "10.10.0.128/26"
    );
    assert_eq!(cidr(from.clone()).await, "10.10.0.192/26");
    let full = subnet(&client, &network(&client).await, from.clone()).await;
    assert_eq!(verdict(&full), (500, "SubnetAllocationError"));
    assert!(
        full.text
            .contains("Insufficient prefix space to allocate subnet size /26")
    );

    // What is deleted can be had again.
    let all = client
        .fetch(&format!("{SUBNETS}?subnetpool_id={}", id(&allocator)))
        .await;
    assert_eq!(all.as_array().unwrap().len(), 5);
    let gone = client.delete(&format!("{SUBNETS}/{}", id(&all[0]))).await;
    assert_eq!(gone.status, 204);
    let freed = all[0]["cidr"].clone();
    assert_eq!(cidr(with("cidr", freed.clone())).await, freed);
    let used = client.delete(&format!("{POOLS}/{}", id(&allocator))).await;
    assert_eq!(verdict(&used), (400, "SubnetPoolDeleteError"));
}

#[tokio::test]
async fn subnets_that_a_pool_does_not_give_are_refused_in_neutrons_words() {
    let (_cloud, client, admin) = both().await;
    let bounds = json!({"min_prefixlen": 25, "max_prefixlen": 28, "default_prefixlen": 26, "default_quota": 128});
    let allocator = pool(&client, bounds).await;
    let theirs = pool(&admin, json!({})).await;
    let from = json!({"subnetpool_id": allocator["id"]});
    let first = subnet(&client, &network(&client).await, from).await;
    assert_eq!(first.status, 201);
    let rows = [
        (
            json!({"prefixlen": 24}),
            400,
            "MinPrefixSubnetAllocationError",
            "minimum allowed prefix is 25",
        ),
        (
            json!({"prefixlen": 29}),
            400,
            "MaxPrefixSubnetAllocationError",
            "maximum allowed prefix is 28",
        ),
        (
            json!({"prefixlen": 25}),
            409,
            "SubnetPoolQuotaExceeded",
            "quota exceeded",
        ),
        (
            json!({"cidr": "10.10.0.0/28"}),
            500,
            "SubnetAllocationError",
            "Cannot allocate requested subnet",
        ),
        (
            json!({"cidr": "10.11.0.0/26"}),
            500,
            "SubnetAllocationError",
            "Cannot allocate requested subnet",
        ),
        (
            json!({"cidr": "10.10.0.128/26", "prefixlen": 26}),
            400,
            "BadRequest",
            "must not be supplied together",
        ),
        (
            json!({"ip_version": 6}),
            400,
            "BadRequest",
            "Cannot allocate IPv6 subnet from IPv4 subnet pool",
        ),
        (
            json!({"allocation_pools": [{"start": "10.10.0.2", "end": "10.10.0.9"}]}),
            400,
            "BadRequest",
            "allowed only for specific subnet requests",
        ),
        (
            json!({"subnetpool_id": theirs["id"]}),
            404,
            "SubnetPoolNotFound",
            "could not be found",
        ),
        (
            json!({"use_default_subnetpool": true}),
            400,
            "BadRequest",
            "cannot both be specified",
        ),
        (
            json!({"subnetpool_id": null}),
            400,
            "BadRequest",
            "in the absence of a cidr",
        ),
        (
            json!({"subnetpool_id": null, "use_default_subnetpool": true}),
            400,
            "BadRequest",
            "No default subnetpool found for IPv4",
        ),
    ];
    let network = network(&client).await;
    for (fields, status, kind, words) in rows {
        let mut given = json!({"subnetpool_id": allocator["id"]});
        for (name, value) in fields.as_object().unwrap() {
            given[name] = value.clone();
        }
        let got = subnet(&client, &network, given).await;
        assert_eq!(verdict(&got), (status, kind), "{fields}: {}", got.text);
        assert!(got.text.contains(words), "{fields}: {}", got.text);
    }
    assert_eq!(
        client
            .fetch(&format!("{SUBNETS}?network_id={network}"))
            .await,
        json!([])
    );
}

#[tokio::test]
async fn pools_that_make_no_sense_are_refused() {
    let (_cloud, client) = demo().await;
    let rows = [
        (json!({"prefixes": []}), 400, "EmptySubnetPoolPrefixList"),
        (
            json!({"prefixes": ["10.0.0.0/8", "fd00::/48"]}),
            400,
            "PrefixVersionMismatch",
        ),
        (json!({"prefixes": ["ten"]}), 400, "HTTPBadRequest"),
        (json!({"name": ""}), 400, "HTTPBadRequest"),
        (
            json!({"min_prefixlen": 30, "max_prefixlen": 29}),
            400,
            "IllegalSubnetPoolPrefixBounds",
        ),
        (
            json!({"max_prefixlen": 33}),
            400,
            "IllegalSubnetPoolPrefixBounds",
        ),
        (
            json!({"default_prefixlen": 7}),
            400,
            "IllegalSubnetPoolPrefixBounds",
        ),
        (
            json!({"default_prefixlen": 30, "max_prefixlen": 28}),
            400,
            "IllegalSubnetPoolPrefixBounds",
        ),
        (json!({"shared": true}), 403, "PolicyNotAuthorized"),
        (json!({"is_default": true}), 403, "PolicyNotAuthorized"),
    ];
    for (fields, status, kind) in rows {
        let mut given = json!({"name": "pool", "prefixes": ["10.10.0.0/24"]});
        for (name, value) in fields.as_object().unwrap() {
            given[name] = value.clone();
        }
        let got = client.post(POOLS, json!({"subnetpool": given})).await;
        assert_eq!(verdict(&got), (status, kind), "{fields}: {}", got.text);
    }
}

#[tokio::test]
async fn a_shared_pool_is_for_everyone_and_changed_by_its_owner_alone() {
    let (_cloud, client, admin) = both().await;
    let shared = pool(
        &admin,
        json!({"shared": true, "is_default": true, "prefixes": ["fd00:a::/48"]}),
    )
    .await;
    assert_eq!(
        (&shared["ip_version"], &shared["default_prefixlen"]),
        (&json!(6), &json!("64"))
    );
    let listed = client.fetch(POOLS).await;
    assert_eq!(listed[0]["id"], shared["id"]);
    let path = format!("{POOLS}/{}", id(&shared));
    let denied = client
        .put(&path, json!({"subnetpool": {"name": "mine"}}))
        .await;
    assert_eq!(denied.status, 403);
    let given = json!({"ip_version": 6, "use_default_subnetpool": true});
    let got = subnet(&client, &network(&client).await, given).await;
    assert_eq!(got.body["subnet"]["cidr"], "fd00:a::/64", "{}", got.text);
    let shrunk = json!({"subnetpool": {"prefixes": ["fd00:b::/48"]}});
    let got = admin.put(&path, shrunk).await;
    assert_eq!(verdict(&got), (400, "IllegalSubnetPoolPrefixUpdate"));
    let grown = json!({"subnetpool": {"prefixes": ["fd00:a::/48", "fd00:a:1::/48"]}});
    let got = admin.put(&path, grown).await;
    assert_eq!(
        got.body["subnetpool"]["prefixes"],
        json!(["fd00:a::/47"]),
        "{}",
        got.text
    );
    let second =
        json!({"subnetpool": {"name": "p", "prefixes": ["fd00:c::/48"], "is_default": true}});
    assert_eq!(
        verdict(&admin.post(POOLS, second).await),
        (400, "InvalidInput")
    );
}

#[tokio::test]
async fn subnets_of_a_network_share_a_pool_or_an_address_scope() {
    let (_cloud, client) = demo().await;
    let scope = json!({"address_scope": {"name": "s", "ip_version": 4}});
    let scope = client.make(SCOPES, scope).await;
    let inside = |prefix: &str| json!({"prefixes": [prefix], "address_scope_id": scope["id"], "default_prefixlen": 26});
    let (one, two) = (
        pool(&client, inside("10.10.0.0/24")).await,
        pool(&client, inside("10.20.0.0/24")).await,
    );
    let other = pool(
        &client,
        json!({"prefixes": ["10.30.0.0/24"], "default_prefixlen": 26}),
    )
    .await;
    let network = network(&client).await;
    let of = |pool: &Value| json!({"subnetpool_id": pool["id"]});
    for (pool, status) in [(&one, 201), (&two, 201), (&other, 400)] {
        let got = subnet(&client, &network, of(pool)).await;
        assert_eq!(got.status, status, "{}", got.text);
    }
    let got = subnet(&client, &network, json!({"cidr": "10.40.0.0/24"})).await;
    assert_eq!(verdict(&got), (400, "NetworkSubnetPoolAffinityError"));
    let six = json!({"ip_version": 6, "cidr": "fd00::/64"});
    assert_eq!(subnet(&client, &network, six).await.status, 201);
    let detail = client
        .fetch(&format!("/network/v2.0/networks/{network}"))
        .await;
    assert_eq!(detail["ipv4_address_scope"], scope["id"]);
    assert_eq!(detail["ipv6_address_scope"], Value::Null);

    let clash = json!({"subnetpool": {"name": "p", "prefixes": ["10.10.0.0/25"], "address_scope_id": scope["id"]}});
    assert_eq!(
        verdict(&client.post(POOLS, clash).await),
        (409, "AddressScopePrefixConflict")
    );
    let six = json!({"subnetpool": {"name": "p", "prefixes": ["fd00::/48"], "address_scope_id": scope["id"]}});
    let kind = "IllegalSubnetPoolIpVersionAssociationToAddressScope";
    assert_eq!(verdict(&client.post(POOLS, six).await), (400, kind));
    let used = client.delete(&format!("{SCOPES}/{}", id(&scope))).await;
    assert_eq!(verdict(&used), (409, "AddressScopeInUse"));
}
