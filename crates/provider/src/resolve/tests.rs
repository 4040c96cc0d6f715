use std::sync::Arc;

use api::infra::v1beta2::{
    FlavorFilter, FlavorParam, ImageFilter, ImageParam, NetworkFilter, Param, SubnetFilter,
};
use openstack::View;
use openstack::compute::Flavor;
use openstack::image::Image;
use openstack::inventory::Table;
use openstack::network::{Network, Subnet};

use super::{flavor, image, matches_tags, names, network, subnet};

fn view() -> View {
    let net = |id: &str, name: &str, tags: &[&str]| Network {
        id: id.into(),
        name: name.into(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..Default::default()
    };
    let sub = |id: &str, network: &str| Subnet {
        id: id.into(),
        name: "nodes".into(),
        network_id: network.into(),
        ip_version: 4,
        ..Default::default()
    };
    let flavor = |name: &str| Flavor {
        id: name.into(),
        name: name.into(),
        ..Default::default()
    };
    let image = |id: &str, name: &str| Image {
        id: id.into(),
        name: name.into(),
        ..Default::default()
    };
    View {
        networks: Arc::new(Table::from_items([
            net("1", "a", &["x"]),
            net("2", "a", &[]),
            net("3", "b", &[]),
        ])),
        subnets: Arc::new(Table::from_items([sub("s1", "1"), sub("s2", "2")])),
        flavors: Arc::new(Table::from_items([flavor("m1.small"), flavor("m1.tiny")])),
        images: Arc::new(Table::from_items([
            image("i1", "ubuntu"),
            image("i2", "ubuntu"),
            image("i3", "flatcar"),
        ])),
        ..View::default()
    }
}

fn named(name: &str) -> Param<NetworkFilter> {
    Param::Filter(NetworkFilter {
        name: Some(name.into()),
        ..Default::default()
    })
}

#[test]
fn what_is_unique_is_found_and_what_is_not_is_listed() {
    let view = view();
    assert_eq!(network(&view, &named("b"), |_| true).unwrap().id, "3");
    assert_eq!(
        network(&view, &Param::Id("2".into()), |_| true)
            .unwrap()
            .name,
        "a"
    );
    let tagged = NetworkFilter {
        name: Some("a".into()),
        tags: vec!["x".into()],
        ..Default::default()
    };
    assert_eq!(
        network(&view, &Param::Filter(tagged), |_| true).unwrap().id,
        "1"
    );
    assert_eq!(
        network(&view, &named("a"), |_| true).unwrap_err().text,
        "2 networks match with name `a`: 1, 2. Give one's id"
    );
    assert_eq!(
        network(&view, &named("z"), |_| true).unwrap_err().text,
        "network with name `z` does not exist, or the project cannot see it; there are: a, b"
    );
    let tagged = NetworkFilter {
        project_id: Some("p".into()),
        tags_any: vec!["x".into(), "y".into()],
        ..Default::default()
    };
    assert_eq!(
        network(&view, &Param::Filter(tagged), |_| true)
            .unwrap_err()
            .text,
        "network with projectID `p` and tagsAny `x, y` does not exist, or the project cannot see it; there are: a, b"
    );
}

#[test]
fn a_subnet_is_looked_for_in_its_network() {
    let view = view();
    let param = Param::Filter(SubnetFilter {
        name: Some("nodes".into()),
        ..Default::default()
    });
    assert_eq!(subnet(&view, &param, Some("2")).unwrap().id, "s2");
    assert!(subnet(&view, &param, None).is_err());
    let elsewhere = subnet(&view, &Param::Id("s1".into()), Some("2"))
        .unwrap_err()
        .text;
    assert_eq!(elsewhere, "subnet s1 is in network 1, not in 2");
}

#[test]
fn a_flavor_or_image_that_is_missing_is_named_with_what_there_is() {
    let view = view();
    let flavor_of = |name: &str| {
        FlavorParam::Filter(FlavorFilter {
            name: Some(name.into()),
        })
    };
    assert_eq!(
        flavor(&view, &flavor_of("m1.tiny"), "project demo")
            .unwrap()
            .id,
        "m1.tiny"
    );
    assert_eq!(
        flavor(&view, &flavor_of("x"), "project demo")
            .unwrap_err()
            .text,
        "flavor `x` does not exist in project demo; there are: m1.small, m1.tiny"
    );
    let image_of = |name: &str| {
        ImageParam::Filter(ImageFilter {
            name: Some(name.into()),
            ..Default::default()
        })
    };
    assert_eq!(image(&view, &image_of("flatcar"), "p").unwrap().id, "i3");
    assert_eq!(
        image(&view, &image_of("ubuntu"), "p").unwrap_err().text,
        "2 images match `ubuntu`: i1, i2. Give one's id in image.id"
    );
    assert_eq!(
        image(&view, &image_of("x"), "p").unwrap_err().text,
        "image `x` does not exist in p; there are: flatcar, ubuntu"
    );
}

#[test]
fn neutrons_four_tag_filters() {
    let s = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let known = s(&["a", "b"]);
    for (all, any, not_all, not_any, matches) in [
        (s(&["a", "b"]), s(&[]), s(&[]), s(&[]), true),
        (s(&["a", "c"]), s(&[]), s(&[]), s(&[]), false),
        (s(&[]), s(&["a", "c"]), s(&[]), s(&[]), true),
        (s(&[]), s(&["c"]), s(&[]), s(&[]), false),
        (s(&[]), s(&[]), s(&["a", "b"]), s(&[]), false),
        (s(&[]), s(&[]), s(&["a", "c"]), s(&[]), true),
        (s(&[]), s(&[]), s(&[]), s(&["c"]), true),
        (s(&[]), s(&[]), s(&[]), s(&["a"]), false),
    ] {
        assert_eq!(
            matches_tags(&known, &all, &any, &not_all, &not_any),
            matches
        );
    }
}

#[test]
fn a_long_list_is_cut_with_its_length() {
    let many: Vec<_> = (10..40).map(|i| format!("n{i}")).collect();
    assert!(names(many.iter().map(String::as_str)).ends_with("n21 and 18 more"));
    assert_eq!(names(std::iter::empty()), "none");
}
