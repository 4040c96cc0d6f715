use super::*;
use crate::cli::ClusterOptions;
use crate::environment::Environment;

fn source(variables: &[(&str, &str)]) -> Source {
    of_flavor("default", variables)
}

fn of_flavor(flavor: &str, variables: &[(&str, &str)]) -> Source {
    let options = ClusterOptions {
        flavor: Some(flavor.to_owned()),
        ..ClusterOptions::default()
    };
    Source::new("x", &options, None, &Environment::with(variables), (1, 0)).unwrap()
}

fn image(name: &str) -> Image {
    Image {
        name: name.to_owned(),
        ..Image::default()
    }
}

fn offer(images: &[&str]) -> Offer {
    let flavor = |name: &str, vcpus, ram, disk| Flavor {
        name: name.to_owned(),
        vcpus,
        ram,
        disk,
        ..Flavor::default()
    };
    Offer {
        images: images.iter().map(|name| image(name)).collect(),
        flavors: vec![
            flavor("large", 4, 8192, 80),
            flavor("diskless", 2, 4096, 0),
            flavor("small", 1, 2048, 20),
            flavor("medium", 2, 4096, 40),
            flavor("tiny", 1, 512, 1),
        ],
        ..Offer::default()
    }
}

fn decided(offer: &Offer, variable: &str, given: &[(&str, &str)]) -> Result<String, Vec<String>> {
    match offer.decide(variable, &source(given)) {
        Decision::Value { value, .. } => Ok(value),
        Decision::Choices(choices) => {
            Err(choices.values.into_iter().map(|(value, _)| value).collect())
        }
    }
}

#[test]
fn versions_are_found_in_names_of_images() {
    for (name, version) in [
        ("ubuntu-2404-kube-v1.34.2", Some("1.34.2")),
        ("flatcar_1.33.0_x86", Some("1.33.0")),
        ("ubuntu-24.04.1", None),
        ("ubuntu-24.04-kubernetes", None),
        ("v1.34", None),
        ("11.34.2", None),
    ] {
        let found = version_in(name).map(|version| version.to_string());
        assert_eq!(found.as_deref(), version, "{name}");
    }
}

#[test]
fn the_image_is_the_one_that_carries_the_version() {
    let offer = offer(&[
        "k-v1.33.0",
        "k-v1.34.2",
        "plain",
        "twice-v1.34.2",
        "twice-v1.34.2",
    ]);
    let version = [("KUBERNETES_VERSION", "v1.34.2")];
    let image = "OPENSTACK_IMAGE_NAME";
    assert_eq!(decided(&offer, image, &version).unwrap(), "k-v1.34.2");
    // Without a version there are two, the newest first, and no image is obvious.
    let versions = decided(&offer, "KUBERNETES_VERSION", &[]).unwrap_err();
    assert_eq!(versions, ["v1.34.2", "v1.33.0"]);
    let named = [("OPENSTACK_IMAGE_NAME", "k-v1.33.0")];
    assert_eq!(
        decided(&offer, "KUBERNETES_VERSION", &named).unwrap(),
        "v1.33.0"
    );
    // No image has this version: all that can be selected by name are choices.
    let other = [("KUBERNETES_VERSION", "v1.30.0")];
    let all = decided(&offer, image, &other).unwrap_err();
    assert_eq!(all, ["k-v1.33.0", "k-v1.34.2", "plain"]);
}

#[test]
fn flavors_are_the_smallest_that_kubeadm_accepts() {
    let offer = offer(&[]);
    let (plane, node) = (
        "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR",
        "OPENSTACK_NODE_MACHINE_FLAVOR",
    );
    assert_eq!(decided(&offer, plane, &[]).unwrap(), "medium");
    assert_eq!(decided(&offer, node, &[]).unwrap(), "small");
    let small = Offer {
        flavors: offer.flavors.into_iter().filter(|f| f.ram < 1024).collect(),
        ..Offer::default()
    };
    assert_eq!(decided(&small, plane, &[]).unwrap_err(), ["tiny"]);
}

#[test]
fn one_network_zone_and_key_pair_are_taken_and_several_are_choices() {
    let network = |id: &str| Network {
        id: id.to_owned(),
        ..Network::default()
    };
    let zone = |name: &str, available| {
        let mut zone = AvailabilityZone {
            name: name.to_owned(),
            ..AvailabilityZone::default()
        };
        zone.state.available = available;
        zone
    };
    let keypair = |name: &str| Keypair {
        name: name.to_owned(),
        ..Keypair::default()
    };
    let subnet = |servers: &[&str]| Subnet {
        dns_nameservers: servers.iter().map(|server| (*server).to_owned()).collect(),
        ..Subnet::default()
    };
    let mut offer = Offer {
        networks: vec![network("n1")],
        zones: vec![zone("b", true), zone("a", true), zone("0", false)],
        keypairs: vec![keypair("k1")],
        subnets: vec![subnet(&["9.9.9.9"]), subnet(&["9.9.9.9"]), subnet(&[])],
        ..Offer::default()
    };
    let get = |offer: &Offer, variable| decided(offer, variable, &[]);
    assert_eq!(get(&offer, "OPENSTACK_EXTERNAL_NETWORK_ID").unwrap(), "n1");
    assert_eq!(get(&offer, "OPENSTACK_FAILURE_DOMAIN").unwrap(), "a");
    assert_eq!(get(&offer, "OPENSTACK_SSH_KEY_NAME").unwrap(), "k1");
    assert_eq!(get(&offer, "OPENSTACK_DNS_NAMESERVERS").unwrap(), "9.9.9.9");

    offer.networks.push(network("n2"));
    offer.keypairs.push(keypair("k2"));
    offer.subnets.push(subnet(&["1.1.1.1"]));
    let networks = get(&offer, "OPENSTACK_EXTERNAL_NETWORK_ID").unwrap_err();
    assert_eq!(networks, ["n1", "n2"]);
    let keypairs = get(&offer, "OPENSTACK_SSH_KEY_NAME").unwrap_err();
    assert_eq!(keypairs, ["k1", "k2", ""]);
    let servers = get(&offer, "OPENSTACK_DNS_NAMESERVERS").unwrap_err();
    assert_eq!(servers, ["9.9.9.9", "1.1.1.1"]);

    let nothing = Offer::default();
    assert_eq!(get(&nothing, "OPENSTACK_SSH_KEY_NAME").unwrap(), "");
    for variable in ["OPENSTACK_EXTERNAL_NETWORK_ID", "OPENSTACK_FAILURE_DOMAIN"] {
        assert_eq!(get(&nothing, variable).unwrap_err(), [""; 0]);
    }
}

#[test]
fn the_image_of_flatcar_is_one_of_flatcar() {
    let image = "OPENSTACK_FLATCAR_IMAGE_NAME";
    let decided = |offer: &Offer, variable, given: &[(&str, &str)]| match offer
        .decide(variable, &of_flavor("flatcar", given))
    {
        Decision::Value { value, .. } => vec![value],
        Decision::Choices(choices) => {
            assert_eq!(choices.why, "no image of Flatcar has v1.34.2 in its name");
            let names = choices.values.into_iter().map(|(value, _)| value);
            names.collect()
        }
    };
    let version = [("KUBERNETES_VERSION", "v1.34.2")];
    let both = offer(&["ubuntu-kube-v1.34.2", "Flatcar-kube-v1.34.2"]);
    assert_eq!(decided(&both, image, &version), ["Flatcar-kube-v1.34.2"]);
    let other = offer(&["ubuntu-kube-v1.34.2", "flatcar-stable"]);
    assert_eq!(decided(&other, image, &version), ["flatcar-stable"]);
    let given = [(image, "flatcar_1.33.0_x86")];
    let version = decided(&other, "KUBERNETES_VERSION", &given);
    assert_eq!(version, ["v1.33.0"]);
}

#[test]
fn flatcar_as_it_is_published_has_no_kubernetes_version() {
    let of = |images: &[&str], variable: &str| {
        let source = of_flavor("flatcar-sysext", &[]);
        match offer(images).decide(variable, &source) {
            Decision::Value { value, .. } => Ok(value),
            Decision::Choices(choices) => Err(choices),
        }
    };
    let images = [
        "flatcar-4152.2.0",
        "flatcar-kube-v1.34.2",
        "ubuntu-kube-v1.34.2",
    ];
    let image = "FLATCAR_IMAGE_NAME";
    assert_eq!(of(&images, image).unwrap(), "flatcar-4152.2.0");
    let two = of(&["flatcar-4152.2.0", "flatcar-stable"], image).unwrap_err();
    assert_eq!(two.values.len(), 2);
    // The machines fetch Kubernetes: names of images do not tell which.
    let version = of(&images, "KUBERNETES_VERSION").unwrap_err();
    assert!(version.values.is_empty());
    assert!(version.why.contains("extensions.flatcar.org"));
}

#[test]
fn an_external_network_is_offered_by_its_name_if_it_is_the_only_one_of_it() {
    let network = |id: &str, name: &str| Network {
        id: id.to_owned(),
        name: name.to_owned(),
        ..Network::default()
    };
    let of = |networks: Vec<Network>| {
        let offer = Offer {
            networks,
            ..Offer::default()
        };
        match offer.decide("OPENSTACK_EXTERNAL_NETWORK_NAME", &source(&[])) {
            Decision::Value { value, .. } => Ok(value),
            Decision::Choices(choices) => Err(choices.values),
        }
    };
    assert_eq!(of(vec![network("1", "public")]).unwrap(), "public");
    let same = vec![network("1", "a"), network("2", "a"), network("3", "b")];
    assert_eq!(of(same).unwrap(), "b");
    let two = of(vec![network("1", "a"), network("2", "b")]).unwrap_err();
    assert_eq!(two[1], ("b".to_owned(), "2".to_owned()));
}
