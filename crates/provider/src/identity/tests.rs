use proptest::prelude::*;

use super::{Identity, Mark};

#[test]
fn a_mark_is_found_where_it_was_put() {
    let (cluster, machine) = (Identity::new(), Identity::new());
    for mark in [Mark::cluster(cluster), Mark::machine(cluster, machine)] {
        assert_eq!(
            Mark::in_description(&mark.description("some [text]")),
            Some(mark)
        );
        assert_eq!(Mark::in_tags(&mark.tags()), Some(mark));
    }
}

#[test]
fn a_long_text_does_not_push_the_mark_out() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let description = mark.description(&"x".repeat(400));
    assert!(description.chars().count() <= 255);
    assert_eq!(Mark::in_description(&description), Some(mark));
}

#[test]
fn only_the_mark_at_the_end_counts() {
    let (ours, other) = (
        Mark::cluster(Identity::new()),
        Mark::cluster(Identity::new()),
    );
    assert_eq!(
        Mark::in_description(&ours.description(&other.description("x"))),
        Some(ours)
    );
    assert_eq!(
        Mark::in_description(&format!("{} and more", ours.description("x"))),
        None
    );
}

#[test]
fn what_is_searched_for_in_descriptions_misses_no_mark_of_the_cluster() {
    let (cluster, other) = (Identity::new(), Identity::new());
    let id = cluster.to_string();
    let marks = [Mark::cluster(cluster), Mark::machine(cluster, other)];
    for description in marks.map(|mark| mark.description("some é [text]")) {
        assert!(Mark::may_be_of(&description, &id), "{description}");
    }
    let marks = [Mark::cluster(other), Mark::machine(other, cluster)];
    for description in marks.map(|mark| mark.description(&id)) {
        let found = Mark::in_description(&description);
        assert!(found.is_some_and(|mark| mark.cluster == other));
    }
    for text in ["", "]", "é]", &id[1..], &format!("{}é]", &id[1..])] {
        assert!(!Mark::may_be_of(text, &id), "{text}");
    }
}

#[test]
fn text_that_is_no_plain_uuid_is_no_identity() {
    for text in [
        "",
        "x",
        "6C90B532-7ba0-418a-a276-5ae55060b5b0",
        "{6c90b532-7ba0-418a-a276-5ae55060b5b0}",
        "6c90b5327ba0418aa2765ae55060b5b0",
    ] {
        assert_eq!(Identity::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_description_panics(text in ".{0,80}") {
        Mark::in_description(&text);
        Mark::may_be_of(&text, "6c90b532-7ba0-418a-a276-5ae55060b5b0");
    }
}

#[test]
fn a_tag_that_marks_something_of_another_is_foreign_and_every_other_is_not() {
    let (cluster, other) = (Identity::new(), Identity::new());
    let mark = Mark::machine(cluster, Identity::new());
    let plain = ["team-a", "ferrostack", "ferrostack-demo", "kubernetes"].map(str::to_owned);
    assert_eq!(mark.foreign_tag(plain.iter().chain(&mark.tags())), None);
    for tag in [
        format!("ferrostack:cluster={other}"),
        format!("ferrostack:machine={other}"),
        format!("ferrostack-cluster={other}"),
        format!("ferrostack-service={other}"),
        format!("ferrostack-shared={other}"),
    ] {
        let tags = [plain[0].clone(), tag.clone()];
        assert_eq!(mark.foreign_tag(&tags), Some(tag.as_str()));
    }
    // That of its machine is not that of the cluster.
    assert!(Mark::cluster(cluster).foreign_tag(&mark.tags()).is_some());
}

#[test]
fn the_identity_of_a_bastion_is_of_its_cluster_and_spec_and_no_machines() {
    let (cluster, other) = (Identity::new(), Identity::new());
    let of = Identity::of_bastion;
    assert_eq!(of(cluster, "a"), of(cluster, "a"));
    assert_ne!(of(cluster, "a"), of(cluster, "b"));
    assert_ne!(of(cluster, "a"), of(other, "a"));
    assert!(!Identity::new().is_of_bastion());
    let mark = Mark::machine(cluster, of(cluster, "a"));
    let read = [
        Mark::in_description(&mark.description("x")),
        Mark::in_tags(&mark.tags()),
    ];
    assert!(mark.is_of_bastion() && read == [Some(mark); 2]);
}
