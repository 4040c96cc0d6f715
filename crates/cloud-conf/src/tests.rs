use std::time::Duration;

use openstack::CloudConfig;
use openstack::config::{
    ApplicationCredentialRef, Credential, DomainRef, Interface, Scope, UserRef,
};
use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::value::duration;
use super::{
    CloudConf, CloudsYaml, Form, KEYS, Key, Program, Section, Severity, Support, from_cloud,
    from_legacy,
};

mod driver;

const MANAGER: Program = Program::CloudControllerManager;
const LOGIN: &str = "[Global]\nauth-url = https://keystone/v3\napplication-credential-id = a\napplication-credential-secret = s3cret\n";

/// The settings of a file without errors.
fn conf(rest: &str) -> CloudConf {
    CloudConf::parse(&format!("{LOGIN}{rest}"), MANAGER)
        .unwrap()
        .conf
}

fn warnings(rest: &str) -> Vec<String> {
    let parsed = CloudConf::parse(&format!("{LOGIN}{rest}"), MANAGER).unwrap();
    parsed.warnings.iter().map(ToString::to_string).collect()
}

fn errors(text: &str) -> String {
    CloudConf::parse(text, MANAGER).unwrap_err().to_string()
}

/// A valid value that differs from the default.
fn sample(form: Form) -> &'static str {
    match form {
        // Also the form of a certificate's reference.
        Form::Text => "https://x/v1/containers/x",
        Form::Repeated | Form::Secret | Form::Tags => "x",
        Form::Pattern => "!~^x.*",
        Form::Url => "http://x",
        Form::Bool => "true",
        Form::Duration | Form::Seconds => "4s",
        Form::Number(_) | Form::UpTo(_) => "7",
        Form::Sources => "metadataService",
        Form::Zones => "a=b",
        Form::Choice(choices) => choices[0],
        Form::Networks => "10.0.0.0/8",
        Form::Labels => "a=b",
    }
}

/// Every key with the programs that read the file.
fn keys() -> impl Iterator<Item = (&'static Key, Program)> {
    let programs = [MANAGER, Program::CinderCsi];
    KEYS.iter()
        .flat_map(move |key| programs.map(|program| (key, program)))
}

#[test]
fn every_key_is_accepted_or_rejected_as_the_table_says() {
    for (key, program) in keys() {
        let section = match key.section {
            Section::LoadBalancerClass => "[LoadBalancerClass \"c\"]".to_owned(),
            section => format!("[{}]", section.name()),
        };
        let text = format!(
            "{LOGIN}[Global]\nusername=u\npassword=p\ntenant-id=t\ndomain-id=d\n{section}\n{} = {}\n",
            key.name,
            sample(key.form)
        );
        let result = CloudConf::parse(&text, program);
        let about = |findings: &[super::Finding], severity| {
            findings.iter().any(|f| {
                f.key == key.name && f.severity == severity && !f.message.contains("second time")
            })
        };
        match (key.support(program), result) {
            (Support::Rejected(reason), Err(rejected)) => {
                let error = rejected.to_string();
                assert!(error.contains(reason), "{}: {error}", key.name);
            }
            (Support::NoEffect(_), Ok(parsed)) => {
                assert!(about(&parsed.warnings, Severity::Warning), "{}", key.name)
            }
            (Support::Served | Support::Elsewhere(_), Ok(parsed)) => {
                assert!(
                    !about(&parsed.warnings, Severity::Warning),
                    "{}: {:?}",
                    key.name,
                    parsed.warnings
                );
            }
            (support, result) => panic!("{}: {support:?}, but {result:?}", key.name),
        }
    }
}

#[test]
fn every_served_key_of_ours_changes_the_settings() {
    for (key, program) in keys().filter(|(key, program)| key.support(*program) == Support::Served) {
        let section = match key.section {
            Section::LoadBalancerClass => "[LoadBalancerClass \"c\"]".to_owned(),
            section => format!("[{}]", section.name()),
        };
        let value = match (key.name, key.form) {
            ("enabled", _) => "false",
            ("os-endpoint-type", _) => "admin",
            ("lb-method", _) => "SOURCE_IP",
            ("container-store", _) => "external",
            // There is only one version, so nothing is set.
            ("lb-version", _) => continue,
            (_, form) => sample(form),
        };
        let base =
            format!("{LOGIN}[Global]\nuser-id = i\npassword = p\n[LoadBalancerClass \"c\"]\n");
        let text = format!("{base}{section}\n{} = {value}\n", key.name);
        let conf = |text: &str| format!("{:?}", CloudConf::parse(text, program).unwrap().conf);
        let secret = key.form == Form::Secret;
        assert!(
            secret || conf(&text) != conf(&base),
            "{} changes nothing",
            key.name
        );
    }
}

#[test]
fn wrong_values_are_rejected_with_section_key_and_line() {
    let cases = [
        (
            "[LoadBalancer]\nmonitor-delay = 5\n",
            "line 6: [LoadBalancer] monitor-delay: this is not a duration",
        ),
        (
            "[LoadBalancer]\nmonitor-delay = 500ms\n",
            "line 6: [LoadBalancer] monitor-delay: this is less than a second",
        ),
        (
            "[LoadBalancer]\nmonitor-delay = 2s\n",
            "[LoadBalancer] monitor-timeout: must not be longer than monitor-delay",
        ),
        (
            "[LoadBalancer]\nmonitor-max-retries = 0\n",
            "line 6: [LoadBalancer] monitor-max-retries: this is not a number of 1 or more",
        ),
        (
            "[LoadBalancer]\nmonitor-max-retries = many\n",
            "line 6: [LoadBalancer] monitor-max-retries: this is not a number",
        ),
        (
            "[LoadBalancer]\nenabled = perhaps\n",
            "line 6: [LoadBalancer] enabled: this is not a boolean",
        ),
        (
            "[LoadBalancer]\nlb-version = v1\n",
            "line 6: [LoadBalancer] lb-version: this is not one of v2",
        ),
        (
            "[LoadBalancer]\nlb-method = FASTEST\n",
            "line 6: [LoadBalancer] lb-method: this is not one of ROUND_ROBIN",
        ),
        (
            "[LoadBalancer]\nfloating-subnet = ~(\n",
            "line 6: [LoadBalancer] floating-subnet: this is neither a name with * and ? nor a regular expression",
        ),
        (
            "[LoadBalancerClass \"c\"]\nfloating-subnet-tags = !&\n",
            "line 6: [LoadBalancerClass] floating-subnet-tags: the list has no tags",
        ),
        (
            "[LoadBalancer]\ndefault-tls-container-ref = here\n",
            "[LoadBalancer] default-tls-container-ref: this is not the URL of a container or secret",
        ),
        (
            "[LoadBalancer]\nlb-provider = ovn\ndefault-tls-container-ref = https://x/v1/secrets/x\n",
            "[LoadBalancer] default-tls-container-ref: the driver ovn has no TLS",
        ),
        (
            "[LoadBalancer]\nsubnet-id\n",
            "line 6: [LoadBalancer] subnet-id: the value is missing",
        ),
        (
            "[LoadBalancer]\nnode-selector = =x\n",
            "line 6: [LoadBalancer] node-selector: `=x` is not a label",
        ),
        (
            "[Networking]\naddress-sort-order = 10.0.0.0/33\n",
            "line 6: [Networking] address-sort-order: `10.0.0.0/33` is not an address range",
        ),
        (
            "[LoadBalancerClass]\nsubnet-id = x\n",
            "line 5: [LoadBalancerClass] a class needs a name",
        ),
        (
            "[Route \"x\"]\n",
            "line 5: [Route] this section takes no name",
        ),
        (
            "[Metadata]\nrequest-timeout = 60\n",
            "line 6: [Metadata] request-timeout: this is not a duration",
        ),
        (
            "[Global]\ntoken = abc\n",
            "line 6: [Global] token: a token cannot be renewed",
        ),
        (
            "[Global]\nos-endpoint-type = outer\n",
            "line 6: [Global] os-endpoint-type: this is not one of public",
        ),
    ];
    for (rest, error) in cases {
        let found = errors(&format!("{LOGIN}{rest}"));
        assert!(found.contains(error), "{rest}: {found}");
    }
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let found = errors("[LoadBalancer]\nmonitor-delay = 5\nenabled = maybe\n");
    for part in ["monitor-delay", "enabled", "auth-url", "who logs in"] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn a_user_without_a_tenant_logs_in_to_its_default_project() {
    let text = "[Global]\nauth-url = https://k/v3\nusername = u\npassword = p\ndomain-name = d\n";
    let global = CloudConf::parse(text, MANAGER).unwrap().conf.global;
    let cloud = global.cloud(None).unwrap();
    assert!(cloud.credential.has_default_scope());
    // A clouds.yaml names its project itself.
    let yaml = "clouds:\n  openstack:\n    auth: {auth_url: 'https://k/v3', username: other, password: p, \
                user_domain_id: default, project_id: given}\n";
    let text = format!("{text}use-clouds = true\n");
    let global = CloudConf::parse(&text, MANAGER).unwrap().conf.global;
    let clouds = CloudsYaml {
        clouds: yaml.into(),
        secure: None,
    };
    let cloud = global.cloud(Some(&clouds)).unwrap();
    assert!(!cloud.credential.has_default_scope());
}

#[test]
fn what_a_login_lacks_is_named() {
    let cases = [
        ("auth-url = http://k\n", "trustee"),
        (
            "auth-url = http://k\nusername = u\n",
            "domain-name: is missing",
        ),
        ("auth-url = http://k\nuser-id = u\n", "password: is missing"),
        (
            "auth-url = http://k\nuser-id = u\npassword = p\ntenant-name = t\n",
            "tenant-domain-name: is missing",
        ),
        (
            "auth-url = http://k\napplication-credential-id = u\n",
            "application-credential-secret: is missing",
        ),
        (
            "auth-url = keystone\n",
            "line 2: [Global] auth-url: this is not a URL",
        ),
        (
            "user-id = u\npassword = p\ntenant-id = t\n",
            "auth-url: is missing",
        ),
    ];
    for (rest, error) in cases {
        let found = errors(&format!("[Global]\n{rest}"));
        let error = error.replace("trustee", "user-id: is missing, and so is username");
        assert!(found.contains(&error), "{rest}: {found}");
    }
}

#[test]
fn unknown_keys_and_sections_are_warned_about_with_their_line() {
    let found = warnings(
        "[LoadBalancer]\nuse-octavia = true\nrouter-id = x\n[Nonsense]\nx = y\n[Global \"other\"]\nauth-url = x\n[LoadBalancer]\nenabled=true\nenabled=false\n",
    );
    assert_eq!(
        found,
        [
            "line 8: [nonsense] this section is unknown, and all of it is ignored",
            "line 10: [Global] [Global \"other\"] is for the Cinder CSI driver, and ignored here",
            "line 6: [LoadBalancer] use-octavia: this key is unknown and ignored",
            "line 7: [LoadBalancer] router-id: this key is unknown here and ignored; it belongs into [Route]",
            "line 14: [LoadBalancer] enabled: this key is set for the second time; the last value counts",
        ]
    );
    assert!(
        warnings("[BlockStorage]\nrescan-on-resize = true\n[KeyManager]\nkey-id = k\n").is_empty()
    );
}

#[test]
fn settings_have_their_types_and_defaults() {
    let defaults = conf("");
    assert!(defaults.load_balancer.enabled);
    assert_eq!(defaults.load_balancer.provider, "amphora");
    assert_eq!(defaults.load_balancer.monitor.delay, Duration::from_secs(5));
    assert_eq!(defaults.metadata.request_timeout, Duration::from_secs(60));
    let set = conf(
        "[Networking]\npublic-network-name = a\npublic-network-name = b\naddress-sort-order = 10.0.0.0/8, fd00::/8\n\
         [LoadBalancer]\nmonitor-delay = 1m2.5s\nnode-selector = a=b, c\nlb-method = source_ip\n\
         [LoadBalancerClass \"Inside\"]\nsubnet-id = s\n",
    );
    assert_eq!(set.networking.public_network_names, ["a", "b"]);
    assert_eq!(set.networking.address_sort_order.len(), 2);
    assert_eq!(set.load_balancer.monitor.delay, Duration::from_secs(62));
    assert_eq!(
        set.load_balancer.node_selector,
        [
            ("a".to_owned(), Some("b".to_owned())),
            ("c".to_owned(), None)
        ]
    );
    assert_eq!(set.load_balancer.method, "SOURCE_IP");
    assert_eq!(set.classes["Inside"].subnet_id, "s");
}

#[test]
fn durations_are_those_of_go() {
    for (text, millis) in [
        ("5s", 5000),
        ("1m30s", 90_000),
        ("1.5h", 5_400_000),
        ("300ms", 300),
        ("0", 0),
        ("+2s", 2000),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    for wrong in [
        "",
        "5",
        "s",
        "5x",
        "-5s",
        "1s5",
        "1..5s",
        "99999999999999999999999h",
        ".",
        "5 s",
    ] {
        assert!(duration(wrong).is_err(), "{wrong}");
    }
}

fn cloud(global: &str) -> CloudConfig {
    let text = format!("[Global]\nauth-url = http://k\n{global}");
    CloudConf::parse(&text, MANAGER)
        .unwrap()
        .conf
        .global
        .cloud(None)
        .unwrap()
}

#[test]
fn global_becomes_the_login_that_the_go_manager_would_use() {
    let user = "username = u\npassword = p\ntenant-name = t\n";
    let password = |global: &str| match cloud(global).credential {
        Credential::Password { user, scope, .. } => (user, scope),
        other => panic!("{other:?}"),
    };
    let by_name = |name: &str| DomainRef::Name(name.to_owned());
    assert_eq!(
        password(&format!("{user}domain-name = d\n")),
        (
            UserRef::Named("u".into(), by_name("d")),
            Scope::Project("t".into(), by_name("d"))
        )
    );
    assert_eq!(
        password(&format!(
            "{user}user-domain-name = d\ntenant-domain-id = e\n"
        )),
        (
            UserRef::Named("u".into(), by_name("d")),
            Scope::Project("t".into(), DomainRef::Id("e".into()))
        )
    );
    assert_eq!(
        password("user-id = i\npassword = p\ntrust-id = x\ntrustee-id = j\ntrustee-password = q\n"),
        (UserRef::Id("j".into()), Scope::Trust("x".into()))
    );
    let named = cloud(
        "application-credential-name = n\napplication-credential-secret = s\nuser-id = i\nregion = R\nos-endpoint-type = internalURL\ntls-insecure = True\n",
    );
    let Credential::ApplicationCredential { which, .. } = &named.credential else {
        panic!("{named:?}")
    };
    assert_eq!(
        *which,
        ApplicationCredentialRef::Named("n".into(), UserRef::Id("i".into()))
    );
    assert_eq!(
        (named.region.as_deref(), named.interface),
        (Some("R"), Interface::Internal)
    );
    // Only `true` disables verification.
    assert!(named.verify);
    assert!(!cloud("application-credential-id = n\napplication-credential-secret = s\ntls-insecure = true\n").verify);
}

#[test]
fn keys_of_global_win_over_the_clouds_yaml() {
    let text = "[Global]\nuse-clouds = true\ncloud = mine\nregion = Two\n";
    let global = CloudConf::parse(text, MANAGER).unwrap().conf.global;
    assert_eq!(global.cloud_name(), "mine");
    let yaml = CloudsYaml {
        clouds: "clouds: {mine: {auth: {auth_url: 'http://k', user_id: u, project_id: p}, region_name: One}}".into(),
        secure: Some("clouds: {mine: {auth: {password: x}}}".into()),
    };
    let cloud = global.cloud(Some(&yaml)).unwrap();
    assert_eq!(
        (cloud.auth_url.as_str(), cloud.region.as_deref()),
        ("http://k", Some("Two"))
    );
    let other = CloudsYaml {
        clouds: "clouds: {other: {}}".into(),
        secure: None,
    };
    assert!(
        global
            .cloud(Some(&other))
            .unwrap_err()
            .contains("`mine` is not in clouds.yaml")
    );
}

#[test]
fn no_secret_is_printed() {
    let text = "[Global]\nauth-url = http://k\nuser-id = u\ntenant-id = t\npassword = s3cret\ntrustee-password = s3cret\napplication-credential-secret = s3cret\n";
    let parsed = CloudConf::parse(text, MANAGER).unwrap();
    assert!(!format!("{parsed:?}").contains("s3cret"));
    let generated = from_cloud(&parsed.conf.global.cloud(None).unwrap()).unwrap();
    assert!(!format!("{generated:?}").contains("s3cret"));
    assert!(generated.text.expose_secret().contains("s3cret"));
}

#[test]
fn a_generated_file_leads_to_the_same_cloud() {
    let globals = [
        "user-id = u\npassword = \"a;b \\\" c\"\ntenant-id = t\nregion = R\n",
        "username = u\npassword = p\ntenant-name = t\nuser-domain-name = d\ntenant-domain-id = e\n",
        "application-credential-id = a\napplication-credential-secret = s\nos-endpoint-type = internal\n",
        "application-credential-name = a\nusername = u\ndomain-id = d\napplication-credential-secret = s\ntls-insecure = true\n",
        "user-id = u\npassword = p\ntrust-id = t\n",
    ];
    for global in globals {
        let wanted = cloud(global);
        let generated = from_cloud(&wanted).unwrap();
        let parsed = CloudConf::parse(generated.text.expose_secret(), MANAGER).unwrap();
        assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
        assert_eq!(parsed.conf.global.cloud(None).unwrap(), wanted, "{global}");
    }
    let no_project = CloudConfig::parse(
        "clouds: {c: {auth: {auth_url: 'http://k', user_id: u, password: p, system_scope: all}}}",
        "c",
    );
    assert!(
        from_cloud(&no_project.unwrap())
            .unwrap_err()
            .contains("names no project")
    );
}

#[test]
fn a_file_of_the_in_tree_provider_becomes_one_of_today() {
    let legacy = "[Global]\nauth-url=http://k:5000/v3\nusername=u\napi-key=p\ntenant-id=t\ndomain-name=Default\n\
                  [LoadBalancer]\nlb-version=v1\nuse-octavia=true\nsubnet-id=s\ncreate-monitor=yes\nmonitor-delay=10\n\
                  monitor-timeout=5s\nmonitor-max-retries=3\n[BlockStorage]\nbs-version=v2\ntrust-device-path=no\n[Nowhere]\nx=y\n";
    let generated = from_legacy(legacy).unwrap();
    let parsed = CloudConf::parse(generated.text.expose_secret(), MANAGER).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    let monitor = &parsed.conf.load_balancer.monitor;
    assert!(monitor.create);
    assert_eq!(
        (
            monitor.delay.as_secs(),
            monitor.timeout.as_secs(),
            monitor.max_retries
        ),
        (10, 5, 3)
    );
    assert_eq!(parsed.conf.load_balancer.placement.subnet_id, "s");
    let notes = generated.notes.join("\n");
    for part in [
        "line 8: lb-version is left out: load balancers are Octavia's",
        "line 9: use-octavia is left out",
        "line 16: bs-version is left out",
        "line 19: x is left out: nothing reads it",
        "--cloud-provider=external",
        "see `ferrostack generate cinder-csi-plugin`",
    ] {
        assert!(notes.contains(part), "{part}:\n{notes}");
    }
    assert!(from_legacy("nonsense").is_err());
}

#[test]
fn names_of_a_file_without_a_domain_are_in_the_default_one() {
    let global = |keys: &str| {
        format!(
            "[Global]\nauth-url=http://k:5000/v2.0\npassword=p\n{keys}[LoadBalancer]\nsubnet-id=s\n"
        )
    };
    for (keys, added) in [
        ("username=u\ntenant-name=t\n", true),
        ("username=u\nproject-name=t\n", true),
        ("username=u\ntenant-id=t\n", true),
        ("username=u\ntenant-name=t\ntenant-domain-name=d\n", true),
        ("user-id=u\ntenant-name=t\n", true),
        ("username=u\ntenant-name=t\ndomain-name=d\n", false),
        ("username=u\ntenant-name=t\nuser-domain-id=d\n", false),
        ("user-id=u\ntenant-name=t\ntenant-domain-id=d\n", false),
        ("user-id=u\ntenant-id=t\n", false),
    ] {
        let generated = from_legacy(&global(keys)).unwrap();
        let text = generated.text.expose_secret();
        assert_eq!(
            text.matches("domain-id = \"default\"").count(),
            usize::from(added),
            "{keys}: {text}"
        );
        let noted = generated
            .notes
            .iter()
            .any(|note| note.starts_with("domain-id = default is added"));
        assert_eq!(noted, added, "{keys}");
        CloudConf::parse(text, MANAGER)
            .unwrap_or_else(|rejected| panic!("{keys}: {:?}", rejected.findings));
    }
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in "\\PC*|([\\[\\]\"\\\\;#= \\n]|Global|zone-map|LoadBalancer|monitor-delay|5s|enabled|node-selector|,)*") {
        let _ = CloudConf::parse(&text, MANAGER);
        let _ = CloudConf::parse(&text, Program::CinderCsi);
        let _ = from_legacy(&text);
    }

    #[test]
    fn no_value_makes_reading_panic(index in 0..KEYS.len(), value in "\\PC*") {
        let key = &KEYS[index];
        let text = format!("{LOGIN}[{}]\n{} = {value}\n", key.section.name(), key.name);
        let _ = CloudConf::parse(&text, MANAGER);
        let _ = CloudConf::parse(&text, Program::CinderCsi);
    }
}
