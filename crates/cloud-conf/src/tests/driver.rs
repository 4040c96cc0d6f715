//! Settings of the Cinder CSI driver.

use std::collections::BTreeMap;

use openstack::config::Credential;
use proptest::prelude::*;

use super::super::{CloudConf, MetadataSource, Parsed, Program, Rejected, Source};
use super::{LOGIN, MANAGER};

const DRIVER: Program = Program::CinderCsi;

fn parse(text: &str) -> Result<Parsed, Rejected> {
    CloudConf::parse(text, DRIVER)
}

fn warnings(parsed: &Parsed) -> Vec<String> {
    parsed.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn each_named_global_is_a_cloud_with_its_own_login_and_region() {
    let text = format!(
        "{LOGIN}region = One\n[Global \"two\"]\nauth-url = https://two/v3\nuser-id = u\npassword = p\ntenant-id = t\n\
         [global \"Two\"]\nauth-url = https://three/v3\napplication-credential-id = b\napplication-credential-secret = c\n"
    );
    let parsed = parse(&text).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    let conf = parsed.conf;
    let cloud = |name: &str| conf.cloud(name).unwrap().cloud(None).unwrap();
    let (first, two, other) = (cloud(""), cloud("two"), cloud("Two"));
    assert_eq!(first.name, "openstack");
    assert_eq!(first.auth_url, "https://keystone/v3");
    assert_eq!(first.region.as_deref(), Some("One"));
    assert_eq!(two.name, "two");
    assert_eq!(two.auth_url, "https://two/v3");
    // Nothing is inherited from the section without a name.
    assert_eq!(two.region, None);
    assert!(matches!(two.credential, Credential::Password { .. }));
    // Names of subsections are case-sensitive.
    assert_eq!(other.auth_url, "https://three/v3");
    assert!(conf.cloud("three").is_none());
}

#[test]
fn a_file_with_named_clouds_alone_or_with_none_is_valid() {
    let named = "[Global \"a\"]\nauth-url = https://k\nuser-id = u\npassword = p\n";
    let conf = parse(named).unwrap().conf;
    assert!(conf.cloud("").is_none());
    assert!(conf.cloud("a").is_some());
    // Nodes need no cloud.
    let conf = parse("[Global]\n[BlockStorage]\nignore-volume-az = yes\n");
    let conf = conf.unwrap().conf;
    assert!(conf.cloud("").is_none());
    assert!(conf.block_storage.ignore_volume_az);
    assert!(parse("").unwrap().conf.cloud("").is_none());
}

#[test]
fn block_storage_and_metadata_have_their_types_and_defaults() {
    let defaults = parse(LOGIN).unwrap().conf;
    assert_eq!(defaults.block_storage, Default::default());
    let both = [MetadataSource::ConfigDrive, MetadataSource::MetadataService];
    assert_eq!(defaults.metadata.search_order, both);
    let text = format!(
        "{LOGIN}[BlockStorage]\nnode-volume-attach-limit = 26\nrescan-on-resize = true\nignore-volume-az = on\n\
         ignore-volume-microversion = 1\nzone-map = zone 1 = az1 , zone 2=az2,,b=az1\n\
         [Metadata]\nsearch-order = MetadataService , configdrive\nrequest-timeout = 9s\n"
    );
    let parsed = parse(&text).unwrap();
    let warned: Vec<&str> = parsed.warnings.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(warned, ["rescan-on-resize", "ignore-volume-microversion"]);
    let storage = parsed.conf.block_storage;
    assert_eq!(storage.node_volume_attach_limit, Some(26));
    assert!(storage.ignore_volume_az);
    let pairs = [("zone 1", "az1"), ("zone 2", "az2"), ("b", "az1")];
    let map = pairs.map(|(nova, cinder)| (nova.to_owned(), cinder.to_owned()));
    assert_eq!(storage.zone_map, BTreeMap::from(map));
    let metadata = parsed.conf.metadata;
    assert_eq!(metadata.search_order, [both[1], both[0]]);
    assert_eq!(metadata.request_timeout.as_secs(), 9);
    // As in the Go driver, 0 is no limit.
    let none = parse("[BlockStorage]\nnode-volume-attach-limit = 0\n").unwrap();
    assert_eq!(none.conf.block_storage.node_volume_attach_limit, None);
}

#[test]
fn a_limit_of_volumes_that_go_would_cut_is_cut_and_said() {
    for value in ["257", "-1", "9223372036854775807"] {
        let text = format!("{LOGIN}[BlockStorage]\nnode-volume-attach-limit = {value}\n");
        let parsed = parse(&text).unwrap();
        assert_eq!(
            warnings(&parsed),
            [
                "line 6: [BlockStorage] node-volume-attach-limit: a number below 0 or above 256 counts as 256, as in the Go driver"
            ],
            "{value}"
        );
        assert_eq!(
            parsed.conf.block_storage.node_volume_attach_limit,
            Some(256)
        );
    }
    let most = parse("[BlockStorage]\nnode-volume-attach-limit = 256\n").unwrap();
    assert!(most.warnings.is_empty());
    assert_eq!(most.conf.block_storage.node_volume_attach_limit, Some(256));
}

#[test]
fn wrong_values_of_the_driver_are_rejected_with_section_key_and_line() {
    let cases = [
        (
            "node-volume-attach-limit = many",
            "this is not a number from 0 to 256",
        ),
        (
            "node-volume-attach-limit = ",
            "this is not a number from 0 to 256",
        ),
        (
            "node-volume-attach-limit = 99999999999999999999",
            "this is not a number from 0 to 256",
        ),
        (
            "node-volume-attach-limit",
            "the value is missing; write `key = VALUE`",
        ),
        (
            "rescan-on-resize = perhaps",
            "this is not a boolean; write true or false",
        ),
        (
            "ignore-volume-az = 2",
            "this is not a boolean; write true or false",
        ),
        (
            "ignore-volume-microversion = 3.34",
            "this is not a boolean; write true or false",
        ),
        (
            "zone-map = nova",
            "`nova` is not a zone of Nova and one of Cinder such as NOVA=CINDER",
        ),
        (
            "zone-map = a=b,=c",
            "`=c` is not a zone of Nova and one of Cinder such as NOVA=CINDER",
        ),
        (
            "zone-map = a=",
            "`a=` is not a zone of Nova and one of Cinder such as NOVA=CINDER",
        ),
        (
            "zone-map = a=b=c",
            "`a=b=c` is not a zone of Nova and one of Cinder such as NOVA=CINDER",
        ),
        (
            "zone-map = a:b",
            "`a:b` is not a zone of Nova and one of Cinder such as NOVA=CINDER",
        ),
        (
            "zone-map = a=b,a=c",
            "the zone `a` has two zones of Cinder; it can have one",
        ),
        ("zone-map", "the value is missing; write `key = VALUE`"),
    ];
    for (line, message) in cases {
        let error = parse(&format!("[BlockStorage]\n{line}\n")).unwrap_err();
        let key = line.split(" = ").next().unwrap();
        let expected = format!("line 2: [BlockStorage] {key}: {message}");
        assert_eq!(error.to_string(), expected, "{line}");
    }
    for (value, message) in [
        (
            "",
            "the list is empty; leave it out for configDrive,metadataService",
        ),
        (
            " , ",
            "the list is empty; leave it out for configDrive,metadataService",
        ),
        ("disk", "`disk` is neither configDrive nor metadataService"),
        (
            "configDrive,metadata",
            "`metadata` is neither configDrive nor metadataService",
        ),
        (
            "configDrive,configDrive",
            "configDrive is in the list twice",
        ),
    ] {
        let error = parse(&format!("[Metadata]\nsearch-order = {value}\n")).unwrap_err();
        let expected = format!("line 2: [Metadata] search-order: {message}");
        assert_eq!(error.to_string(), expected, "{value}");
    }
}

#[test]
fn what_a_named_cloud_lacks_is_said_under_its_name() {
    for (text, message) in [
        (
            "[Global \"b\"]\nauth-url = https://k\n",
            "[Global \"b\"] user-id: is missing",
        ),
        (
            "[Global \"b\"]\nuser-id = u\npassword = p\n",
            "[Global \"b\"] auth-url: is missing",
        ),
        (
            "[Global \"b\"]\nauth-url = k\n",
            "line 6: [Global \"b\"] auth-url: this is not a URL",
        ),
        (
            "[Global \"b\"]\ntoken = t\n",
            "line 6: [Global \"b\"] token: a token cannot be renewed",
        ),
        (
            "[Global \"\"]\nauth-url = https://k\n",
            "line 5: [Global] the name of a cloud is empty",
        ),
        (
            "[BlockStorage \"b\"]\n",
            "line 5: [BlockStorage] this section takes no name; remove \"b\"",
        ),
    ] {
        let error = parse(&format!("{LOGIN}{text}")).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn one_file_serves_both_programs_and_each_warns_about_what_it_would_have_read_itself() {
    let text = format!(
        "{LOGIN}[Global \"b\"]\nauth-url = https://k\nuser-id = u\npassword = p\n\
         [LoadBalancer]\nmonitor-delay = 5\nuse-octavia = true\n[LoadBalancerClass]\nsubnet-id = s\n[Route \"r\"]\n\
         [BlockStorage]\nnode-volume-attach-limit = many\nbs-version = v3\n[Metadata]\nsearch-order = disk\n[KeyManager]\nkey-id = k\n"
    );
    let driver = text.replace("attach-limit = many", "attach-limit = 10");
    let driver = parse(&driver.replace("search-order = disk", "search-order = configDrive"));
    assert_eq!(
        warnings(&driver.unwrap()),
        [
            "line 12: [LoadBalancerClass] a class needs a name: write [LoadBalancerClass \"NAME\"] (the cloud controller manager reads it)",
            "line 14: [Route] this section takes no name; remove \"r\" (the cloud controller manager reads it)",
            "line 10: [LoadBalancer] monitor-delay: this is not a duration; write it with its unit, as 5s or 1m30s (the cloud controller manager reads it)",
            "line 11: [LoadBalancer] use-octavia: this key is unknown and ignored",
            "line 17: [BlockStorage] bs-version: the version of Cinder's API is 3, which every Cinder has",
        ]
    );
    let manager = text.replace("delay = 5\n", "delay = 5s\n");
    let manager = manager.replace("[LoadBalancerClass]", "[LoadBalancerClass \"c\"]");
    let manager = CloudConf::parse(&manager.replace("[Route \"r\"]", "[Route]"), MANAGER);
    assert_eq!(
        warnings(&manager.unwrap()),
        [
            "line 5: [Global] [Global \"b\"] is for the Cinder CSI driver, and ignored here",
            "line 11: [LoadBalancer] use-octavia: this key is unknown and ignored",
            "line 16: [BlockStorage] node-volume-attach-limit: this is not a number from 0 to 256 (the Cinder CSI driver reads it)",
            "line 19: [Metadata] search-order: `disk` is neither configDrive nor metadataService (the Cinder CSI driver reads it)",
        ]
    );
}

#[test]
fn what_the_manager_requires_is_not_asked_of_the_driver() {
    let text = format!(
        "{LOGIN}[LoadBalancer]\nmonitor-delay = 2s\nmonitor-timeout = 9s\ndefault-tls-container-ref = here\n"
    );
    assert!(CloudConf::parse(&text, MANAGER).is_err());
    assert!(parse(&text).unwrap().warnings.is_empty());
}

/// Several files as one, named `a`, `b` and so on.
fn merge(texts: &[&str]) -> Result<Parsed, Rejected> {
    let files: Vec<Source<'_>> = ["a", "b", "c"]
        .into_iter()
        .zip(texts)
        .map(|(name, text)| Source { name, text })
        .collect();
    CloudConf::merge(&files, DRIVER)
}

#[test]
fn of_several_files_the_last_value_of_a_key_counts() {
    let parsed = merge(&[
        LOGIN,
        "[Global]\nregion = One\n[BlockStorage]\nnode-volume-attach-limit = 5\nzone-map = a=b\n",
        "[Global]\nregion = Two\n[Global \"x\"]\nauth-url = https://k\nuser-id = u\npassword = p\n[BlockStorage]\nzone-map = c=d\n",
    ])
    .unwrap();
    // A key in another file is not one that is set twice.
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    let conf = parsed.conf;
    let cloud = conf.cloud("").unwrap().cloud(None).unwrap();
    assert_eq!(cloud.auth_url, "https://keystone/v3");
    assert_eq!(cloud.region.as_deref(), Some("Two"));
    assert!(conf.cloud("x").is_some());
    assert_eq!(conf.block_storage.node_volume_attach_limit, Some(5));
    let map = BTreeMap::from([("c".to_owned(), "d".to_owned())]);
    assert_eq!(conf.block_storage.zone_map, map);
    // The credentials of a named cloud may be in a file of their own.
    let split = merge(&[
        "[Global \"x\"]\nauth-url = https://k\n",
        "[Global \"x\"]\nuser-id = u\npassword = p\n",
    ]);
    assert!(split.unwrap().conf.cloud("x").is_some());
}

#[test]
fn findings_of_several_files_name_their_file() {
    let error = merge(&[
        "[BlockStorage]\nrescan-on-resize = maybe\n",
        "oops\n",
        "[Global]\nauth-url = https://k\n[Nonsense]\n",
    ]);
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a: line 2: [BlockStorage] rescan-on-resize: this is not a boolean; write true or false; \
         b: line 1: a key stands before the first section; write a header such as [Global]"
    );
    let parsed = merge(&["", "[Nonsense]\n"]).unwrap();
    assert_eq!(
        warnings(&parsed),
        ["b: line 1: [nonsense] this section is unknown, and all of it is ignored"]
    );
    // Keys missing in all files belong to none of them.
    let error = merge(&["[Global]\nauth-url = https://k\n", ""]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("[Global] user-id: is missing")
    );
}

#[test]
fn neither_the_text_of_a_file_nor_a_secret_of_a_named_cloud_is_printed() {
    let text = "[Global \"x\"]\nauth-url = https://k\nuser-id = u\npassword = s3cret\n";
    let source = Source { name: "a", text };
    assert_eq!(format!("{source:?}"), "Source(\"a\")");
    assert!(!format!("{:?}", parse(text).unwrap()).contains("s3cret"));
    let error = parse("[Global \"x\"]\npassword = s3cret\n").unwrap_err();
    assert!(!format!("{error:?} {error}").contains("s3cret"));
}

proptest! {
    #[test]
    fn no_subsections_make_merging_panic(
        texts in proptest::collection::vec("([\\[\\]\"=,\\n ]|Global|\"x\"|BlockStorage|zone-map|user-id|é)*", 0..4),
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let _ = merge(&texts);
    }
}
