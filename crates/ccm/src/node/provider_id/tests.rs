use super::ProviderId;

#[test]
fn the_forms_of_a_provider_id_are_those_of_the_go_manager() {
    let server = "1b2c";
    for (text, region) in [
        ("openstack:///1b2c", None),
        ("openstack://RegionOne/1b2c", Some("RegionOne")),
        ("/1b2c", None),
        ("RegionOne/1b2c", Some("RegionOne")),
    ] {
        let id = ProviderId::parse(text).unwrap();
        assert_eq!(
            (id.region.as_deref(), id.server.as_str()),
            (region, server),
            "{text}"
        );
        assert_eq!(ProviderId::parse(&id.to_string()), Ok(id));
    }
    for wrong in [
        "",
        "1b2c",
        "openstack://",
        "openstack:///",
        "openstack://r/a/b",
        "aws:///1b2c",
        "kind://docker/a/b",
    ] {
        let error = ProviderId::parse(wrong).unwrap_err();
        assert!(error.contains(&format!("`{wrong}`")), "{error}");
    }
}
