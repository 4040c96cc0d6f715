use super::*;

#[test]
fn times_of_a_crate_are_added() {
    let log = "api 1.500 0.250\n- 0.1 0.1\napi 0.25 0\nnonsense\n";
    let all = times(log);
    assert_eq!(all["api"], 2.0);
    assert_eq!(all.len(), 2);
}

#[test]
fn a_function_belongs_to_the_first_crate_that_its_name_has() {
    let crates = ["api".to_owned(), "serde_json".to_owned()];
    let listing = "\
0000000000001000 0000000000000010 t <alloc::vec::Vec<api::Machine> as core::clone::Clone>::clone
0000000000001000 0000000000000010 t serde_json::the_same_code
0000000000002000 0000000000000020 T serde_json::de::from_str
0000000000003000 0000000000000001 t core::fmt::write
0000000000004000 0000000000000002 t sqlite3_open
0000000000005000 0000000000000f00 r a_constant
                 U memcpy
";
    let sums = symbols::summed(listing, &crates);
    let expected = [("C", 2), ("api", 16), ("serde_json", 32), ("std", 1)];
    let expected = expected.map(|(name, size)| (name.to_owned(), size));
    assert_eq!(sums, BTreeMap::from(expected));
}

#[test]
fn the_table_has_every_second_and_every_byte() {
    let times = (0..40_u32).map(|n| (format!("crate{n}"), f64::from(n)));
    let rows = rows(
        times.collect(),
        BTreeMap::from([("crate1".to_owned(), 5_000_000)]),
    );
    let report = Report {
        machine: "a machine".to_owned(),
        compiler_cpu_seconds: 780.0,
        cpu_seconds: 900.0,
        wall_seconds: 500.0,
        binary_bytes: 40_000_000,
        text_bytes: 5_000_000,
        crates: rows,
    };
    let text = render(&report);
    assert!(
        text.contains("10 others                       45.0        5.00"),
        "{text}"
    );
    assert!(text.contains("binary 40000000 bytes (40.0 MB)"), "{text}");
}
