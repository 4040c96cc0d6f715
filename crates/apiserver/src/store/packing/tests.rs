use proptest::prelude::*;

use super::*;

proptest! {
    // Deflating is slow in unoptimised builds.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packed_bytes_are_unpacked_unchanged(bytes in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'{'), any::<u8>()], 0..3000)) {
        let plain = Packable::from(Bytes::from(bytes.clone()));
        let packed = plain.packed().packed();
        prop_assert_eq!(packed.length(), bytes.len());
        prop_assert_eq!(packed.bytes(), bytes);
    }
}

#[test]
fn text_gets_shorter_and_noise_stays_plain() {
    let text = Packable::from(Bytes::from("namespace: default\n".repeat(100))).packed();
    assert!(matches!(text, Packable::Packed(deflated, 1900) if deflated.len() < 100));
    let noise: Vec<u8> = (0..2000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    let digest = ring::digest::digest(&ring::digest::SHA256, &noise);
    let noise = Packable::from(Bytes::copy_from_slice(digest.as_ref())).packed();
    assert!(matches!(noise, Packable::Plain(_)));
}

#[test]
fn objects_that_left_the_history_are_packed_unless_they_changed() {
    use super::super::{Draft, Object, State};
    let mut state = State::new(1).packing_above(1000);
    let collection: Arc<str> = "/configmaps".into();
    let object = |revision: u64, key: &str| -> Arc<Object> {
        let value = serde_json::json!({"metadata": {"name": key}, "data": "text ".repeat(500)});
        Arc::new(Draft::new(&value).at(revision, key.into()))
    };
    for (revision, key) in [(2, "a"), (3, "b"), (4, "a"), (5, "c"), (6, "d")] {
        state.publish(&collection, object(revision, key), false);
    }
    let cold = state.take_cold();
    let revisions: Vec<u64> = cold.iter().map(|cold| cold.object.revision).collect();
    // The first object left the history before the limit was reached; the last one is still in the history.
    assert_eq!(revisions, [2, 3, 4, 5]);
    let before = state.object_bytes;
    for cold in &cold {
        state.replace(cold, Arc::new(cold.object.packed()));
    }
    assert_eq!(state.object_bytes, before);
    for (key, revision) in [("a", 4), ("b", 3), ("c", 5), ("d", 6)] {
        let found = state.get(&collection, key).unwrap();
        assert_eq!(found.revision, revision);
        assert_eq!(found.value()["data"], "text ".repeat(500));
    }
}
