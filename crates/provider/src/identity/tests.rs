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
    }
}
