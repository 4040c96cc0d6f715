use super::Version;

#[test]
fn versions_compare_as_semver_says() {
    let ordered = [
        "1.9.0",
        "1.10.0-alpha",
        "1.10.0-alpha.1",
        "1.10.0-alpha.beta",
        "1.10.0-beta.2",
        "1.10.0-beta.11",
        "1.10.0-rc.1",
        "1.10.0",
        "2.0.0",
    ];
    for pair in ordered.windows(2) {
        let (low, high): (Version, Version) = (pair[0].parse().unwrap(), pair[1].parse().unwrap());
        assert!(low < high, "{low} < {high}");
    }
    assert_eq!(
        "v1.2.3+a".parse::<Version>().unwrap(),
        "1.2.3+b".parse().unwrap()
    );
    for text in [
        "",
        "v1",
        "1.2",
        "1.2.3.4",
        "1.2.03",
        "1.2.x",
        "1.2.3-",
        "1.2.3-a..b",
        "1.2.3+",
        "vv1.2.3",
    ] {
        assert!(text.parse::<Version>().is_err(), "{text}");
    }
}
