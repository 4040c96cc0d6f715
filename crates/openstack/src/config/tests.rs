use std::path::PathBuf;

use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};

use super::{
    ApplicationCredentialRef, CloudConfig, Credential, DomainRef, Draft, Interface, Scope,
    SearchEnv, UserRef, cloud_names, find_clouds_yaml,
};

const FILE: &str = "
clouds:
  devstack:
    auth:
      auth_url: http://192.0.2.1/identity
      username: demo
      password: 0123
      project_name: demo
      user_domain_name: Users
      project_domain_id: projects
    region_name: RegionOne
    interface: internalURL
    identity_api_version: 3
    verify: no
    cacert: /etc/ca.pem
    load_balancer_endpoint_override: http://lb/
    networks: [{name: x}]
  robot:
    auth_type: v3applicationcredential
    auth: {auth_url: 'https://k/v3', application_credential_id: abc, application_credential_secret: s3}
  bare: {}
  empty:
";

fn message(text: &str, cloud: &str) -> String {
    CloudConfig::parse(text, cloud)
        .unwrap_err()
        .message()
        .to_owned()
}

#[test]
fn a_password_entry_is_read_with_all_its_settings() {
    let cloud = CloudConfig::parse(FILE, "devstack").unwrap();
    assert_eq!(cloud.auth_url, "http://192.0.2.1/identity");
    assert_eq!(cloud.region.as_deref(), Some("RegionOne"));
    assert_eq!(cloud.interface, Interface::Internal);
    assert!(!cloud.verify);
    assert_eq!(cloud.cacert.as_deref(), Some("/etc/ca.pem"));
    assert_eq!(cloud.endpoint_overrides["load_balancer"], "http://lb/");
    let Credential::Password {
        user,
        password,
        scope,
    } = &cloud.credential
    else {
        panic!("{cloud:?}")
    };
    assert_eq!(
        *user,
        UserRef::Named("demo".into(), DomainRef::Name("Users".into()))
    );
    assert_eq!(
        *scope,
        Scope::Project("demo".into(), DomainRef::Id("projects".into()))
    );
    assert_eq!(
        password.expose_secret(),
        "0123",
        "kept as written, not as a number"
    );
}

#[test]
fn an_application_credential_is_read_also_without_auth_type() {
    for text in [
        FILE,
        &FILE.replace("auth_type: v3applicationcredential", "verify: true"),
    ] {
        let cloud = CloudConfig::parse(text, "robot").unwrap();
        assert!(matches!(
            &cloud.credential,
            Credential::ApplicationCredential { which: ApplicationCredentialRef::Id(id), .. }
                if id == "abc"
        ));
    }
}

#[test]
fn messages_name_the_cloud_and_the_field() {
    assert_eq!(
        message(FILE, "x"),
        "cloud `x` is not in clouds.yaml; it has: bare, devstack, empty, robot"
    );
    assert_eq!(
        message("", "x"),
        "cloud `x` is not in clouds.yaml; it has: no clouds"
    );
    assert_eq!(
        message("clouds:", "x"),
        "cloud `x` is not in clouds.yaml; it has: no clouds"
    );
    assert_eq!(
        message(FILE, "bare"),
        "cloud `bare`: auth.auth_url is missing"
    );
    assert_eq!(
        message(FILE, "empty"),
        "cloud `empty`: auth.auth_url is missing"
    );
    let with = |rest: &str| format!("clouds: {{a: {{auth: {{auth_url: 'http://k', {rest}}}}}}}");
    assert_eq!(
        message(&with("username: u"), "a"),
        "cloud `a`: auth.password is missing"
    );
    assert_eq!(
        message(&with("password: p"), "a"),
        "cloud `a`: auth.username or auth.user_id is missing"
    );
    assert_eq!(
        message(&with("application_credential_id: i"), "a"),
        "cloud `a`: auth.application_credential_secret is missing"
    );
    let odd = "clouds: {a: {auth_type: v3oidc, auth: {auth_url: 'http://k'}}}";
    assert_eq!(
        message(odd, "a"),
        "cloud `a`: auth_type `v3oidc` is not supported; use password, v3password, v3applicationcredential, token, \
         v3token, v3multifactor, v3totp, v3oidcpassword, v3oidcclientcredentials, v3oidcdeviceauthz, v3oidcaccesstoken"
    );
    let odd =
        "clouds: {a: {interface: inner, auth: {auth_url: 'http://k', username: u, password: p}}}";
    assert_eq!(
        message(odd, "a"),
        "cloud `a`: interface `inner` is not one of public, internal, admin"
    );
}

#[test]
fn a_broken_file_is_located_but_never_quoted() {
    for text in [
        "clouds:\n  a:\n    auth: hunter2\n",
        "clouds:\n  a:\n    auth:\n      password: [hunter2]\n",
        "clouds:\n  a: hunter2\n",
        "clouds: [hunter2]",
        "clouds: {a: {auth: {password: \"hunter2",
        "hunter2",
    ] {
        let message = message(text, "a");
        assert!(
            message.contains("clouds.yaml is not a file of the form"),
            "{message}"
        );
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert!(
        message("clouds:\n  a: [1]\n", "a").contains("at line 2"),
        "the place is named"
    );
}

#[test]
fn secrets_are_not_printed() {
    for cloud in ["devstack", "robot"] {
        let text = format!("{:?}", CloudConfig::parse(FILE, cloud).unwrap());
        assert!(!text.contains("0123") && !text.contains("s3"), "{text}");
        assert!(text.contains("auth_url"), "{text}");
    }
}

#[test]
fn secure_yaml_adds_fields_that_clouds_yaml_lacks() {
    let clouds = "clouds: {a: {auth: {auth_url: 'http://k', username: u, password: old}}}";
    let secure = "clouds: {a: {auth: {password: new}}}";
    let cloud = CloudConfig::parse_with_secure(clouds, Some(secure), "a").unwrap();
    let Credential::Password { password, .. } = &cloud.credential else {
        panic!("{cloud:?}")
    };
    assert_eq!(password.expose_secret(), "new");
}

#[test]
fn names_are_listed_in_order() {
    assert_eq!(
        cloud_names(FILE).unwrap(),
        ["bare", "devstack", "empty", "robot"]
    );
}

#[test]
fn clouds_that_differ_in_any_field_are_not_equal() {
    let cloud = CloudConfig::parse(FILE, "devstack").unwrap();
    let other = |text: String| CloudConfig::parse(&text, "devstack").unwrap();
    assert_eq!(cloud, other(FILE.to_owned()));
    assert_ne!(cloud, other(FILE.replace("0123", "0124")));
    assert_ne!(cloud, other(FILE.replace("RegionOne", "RegionTwo")));
    assert_ne!(cloud, cloud.clone().with_ca(Some("PEM")));
    assert_ne!(cloud, cloud.clone().with_region(Some("RegionTwo")));
    assert_eq!(
        cloud,
        cloud.clone().with_ca(Some(" \n")),
        "a blank CA is none"
    );
}

#[test]
fn the_search_order_is_that_of_other_clients() {
    let paths = |env: &SearchEnv| {
        find_clouds_yaml(env)
            .into_iter()
            .map(|candidate| (candidate.clouds, candidate.secure))
            .collect::<Vec<_>>()
    };
    let env = SearchEnv {
        current_dir: Some("/home/me/project".into()),
        home: Some("/home/me".into()),
        ..SearchEnv::default()
    };
    let clouds: Vec<PathBuf> = paths(&env).into_iter().map(|(clouds, _)| clouds).collect();
    assert_eq!(
        clouds,
        [
            "/home/me/project/clouds.yaml",
            "/home/me/project/clouds.yml",
            "/home/me/.config/openstack/clouds.yaml",
            "/home/me/.config/openstack/clouds.yml",
            "/etc/openstack/clouds.yaml",
            "/etc/openstack/clouds.yml",
        ]
        .map(PathBuf::from)
    );
    let env = SearchEnv {
        client_config_file: Some("/secret/my.yaml".into()),
        ..env
    };
    assert_eq!(
        paths(&env),
        [("/secret/my.yaml".into(), "/secret/secure.yaml".into())]
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*", cloud in ".*") {
        let _ = CloudConfig::parse(&text, &cloud);
        let _ = cloud_names(&text);
    }

    #[test]
    fn no_yaml_makes_it_panic(
        text in "clouds:\n(  [a-c]:( \\{\\}| null| 1| \\[\\])?\n(    (auth|verify|cacert|a_endpoint_override|interface): ?(\\{auth_url: [a-z:/]{1,9}, password: .?\\}|x|true|\\*a|&a b)?\n){0,3}){0,3}",
    ) {
        for cloud in ["a", "b", "c"] {
            let _ = CloudConfig::parse(&text, cloud);
        }
    }

    #[test]
    fn a_written_cloud_is_read_back_equal(
        name in "[a-zA-Z0-9 :#'\"-]{1,12}",
        user in any::<String>().prop_filter("not empty", |text| !text.is_empty()),
        password in any::<String>().prop_filter("not empty", |text| !text.is_empty()),
        project in "\\PC{1,20}",
        verify in any::<bool>(),
        region in proptest::option::of("[a-z]{1,5}"),
    ) {
        let cloud = CloudConfig {
            name: name.clone(),
            auth_url: "https://k/v3".into(),
            credential: Credential::Password {
                user: UserRef::Named(user, DomainRef::Name("d".into())),
                password: SecretString::from(password),
                scope: Scope::Project(project, DomainRef::Id("0123".into())),
            },
            region,
            interface: Interface::Internal,
            verify,
            cacert: Some("true".into()),
            ca_pem: None,
            client_certificate: None,
            endpoint_overrides: [("volumev3".to_owned(), "http://v".to_owned())].into(),
        };
        let text = cloud.to_clouds_yaml();
        let again = CloudConfig::parse(text.expose_secret(), &name);
        prop_assert!(again.is_ok(), "{:?}\n{}", again, text.expose_secret());
        prop_assert!(cloud == again.unwrap(), "{}", text.expose_secret());
    }
}

fn scope_of(auth: &str) -> Result<Scope, String> {
    let text = format!(
        "clouds: {{c: {{auth: {{auth_url: 'https://k/v3', username: u, password: p, {auth}}}}}}}"
    );
    match CloudConfig::parse(&text, "c") {
        Ok(CloudConfig {
            credential: Credential::Password { scope, .. },
            ..
        }) => Ok(scope),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.message().to_owned()),
    }
}

#[test]
fn the_system_and_trusts_are_scopes() {
    assert_eq!(scope_of("system_scope: all"), Ok(Scope::System));
    assert_eq!(scope_of("trust_id: abc"), Ok(Scope::Trust("abc".into())));
    assert_eq!(scope_of("trust_id: ''"), Ok(Scope::Default));
    for auth in ["system_scope: all", "trust_id: abc"] {
        let text = format!(
            "clouds: {{c: {{auth: {{auth_url: 'https://k/v3', user_id: u, password: p, {auth}}}}}}}"
        );
        let cloud = CloudConfig::parse(&text, "c").unwrap();
        let written = cloud.to_clouds_yaml();
        let read = CloudConfig::parse(written.expose_secret(), "c").unwrap();
        assert_eq!(read, cloud);
    }
}

#[test]
fn a_scope_that_cannot_be_used_is_rejected_with_its_key() {
    for (auth, key) in [
        ("system_scope: some", "auth.system_scope"),
        ("system_scope: all, trust_id: abc", "auth.trust_id"),
        ("system_scope: all, project_name: p", "auth.system_scope"),
        ("trust_id: abc, domain_id: d", "auth.trust_id"),
    ] {
        let message = scope_of(auth).unwrap_err();
        assert!(message.contains(key), "{message}");
    }
    for key in ["system_scope: all", "trust_id: abc"] {
        let text = format!(
            "clouds: {{c: {{auth: {{auth_url: 'https://k/v3', application_credential_id: i, \
             application_credential_secret: s, {key}}}}}}}"
        );
        let message = message(&text, "c");
        assert!(message.contains("application credential"), "{message}");
    }
}

fn credential_of(auth: &str, fields: &str) -> Result<Credential, String> {
    let text = format!("clouds: {{c: {{auth: {{auth_url: 'https://k/v3', {auth}}}, {fields}}}}}");
    let cloud = CloudConfig::parse(&text, "c").map_err(|error| error.message().to_owned())?;
    let written = cloud.to_clouds_yaml();
    let read = CloudConfig::parse(written.expose_secret(), "c").unwrap();
    assert_eq!(read, cloud, "{:?}", cloud.credential);
    Ok(cloud.credential)
}

#[test]
fn other_ways_of_logging_in_are_read_and_written_and_not_printed() {
    let openid = "identity_provider: idp, protocol: openid, client_id: kubectl, discovery_endpoint: 'http://i/d'";
    for (auth, fields, expected) in [
        ("token: hunter2", "", "Token(Default)"),
        (
            "token: hunter2, project_id: p",
            "auth_type: v3token",
            "Token(ProjectId",
        ),
        (
            "username: u, password: hunter2, passcode: '012345'",
            "auth_type: v3multifactor, auth_methods: [v3password, v3totp]",
            "Factors { user: Named",
        ),
        (
            "username: u, password: hunter2, passcode: '012345'",
            "",
            "Factors { user: Named",
        ),
        (
            "user_id: u, passcode: '012345'",
            "auth_type: v3totp",
            "Factors { user: Id",
        ),
        (
            "username: u, password: hunter2",
            "auth_type: v3multifactor, auth_methods: v3password",
            "Password { user: Named",
        ),
        (
            &format!("{openid}, username: u, password: hunter2"),
            "auth_type: v3oidcpassword",
            "OpenId { login: OpenId { provider: \"idp\"",
        ),
        (
            &format!("{openid}, client_secret: hunter2, project_id: p"),
            "auth_type: v3oidcclientcredentials",
            "OpenId {",
        ),
        (openid, "auth_type: v3oidcdeviceauthz", "OpenId {"),
        (
            "identity_provider: idp, protocol: openid, access_token: hunter2",
            "auth_type: v3oidcaccesstoken",
            "OpenId {",
        ),
    ] {
        let credential = credential_of(auth, fields).unwrap();
        let text = format!("{credential:?}");
        assert!(text.starts_with(expected), "{text}");
        assert!(
            !text.contains("hunter2") && !text.contains("012345"),
            "{text}"
        );
    }
}

#[test]
fn what_another_way_of_logging_in_lacks_is_named() {
    let openid = "identity_provider: idp, protocol: openid, client_id: kubectl";
    for (auth, fields, expected) in [
        (
            "project_id: p",
            "auth_type: v3token",
            "auth.token is missing",
        ),
        (
            "username: u, password: p",
            "auth_type: v3multifactor",
            "auth.passcode is missing",
        ),
        (
            "username: u, password: p",
            "auth_type: v3multifactor, auth_methods: [v3password, v3oidcpassword]",
            "auth_methods `v3oidcpassword` is not one of",
        ),
        (
            openid,
            "auth_type: v3oidcdeviceauthz",
            "auth.discovery_endpoint or auth.access_token_endpoint is missing",
        ),
        (
            &format!("{openid}, discovery_endpoint: 'file:///x'"),
            "auth_type: v3oidcdeviceauthz",
            "auth.discovery_endpoint must begin with http://",
        ),
        (
            &format!("{openid}, discovery_endpoint: 'http://i', access_token_type: refresh"),
            "auth_type: v3oidcdeviceauthz",
            "auth.access_token_type must be",
        ),
        (
            &format!("{openid}, discovery_endpoint: 'http://i'"),
            "auth_type: v3oidcclientcredentials",
            "auth.client_secret is missing",
        ),
        (
            &format!("{openid}, discovery_endpoint: 'http://i'"),
            "auth_type: v3oidcpassword",
            "auth.username is missing",
        ),
    ] {
        let message = credential_of(auth, fields).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn variables_fill_what_a_file_lacks_but_never_half_of_a_user_or_of_a_scope() {
    let variables = |all: &'static [(&str, &str)]| {
        Draft::of_variables(move |name| {
            let found = all.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        })
    };
    let all = variables(&[
        ("OS_AUTH_URL", "http://k"),
        ("OS_USERNAME", "u"),
        ("OS_USER_DOMAIN_NAME", "d"),
        ("OS_PASSWORD", "p"),
        ("OS_TENANT_NAME", "t"),
        ("OS_PROJECT_DOMAIN_ID", "e"),
        ("OS_REGION_NAME", ""),
        ("OS_INSECURE", "true"),
        ("OS_CACERT", "/ca"),
    ]);
    let cloud = all.check("environment").unwrap();
    let text = "clouds: {c: {auth: {auth_url: 'http://k', username: u, user_domain_name: d, password: p, \
         project_name: t, project_domain_id: e}, verify: false}}";
    assert_eq!(cloud, CloudConfig::parse(text, "c").unwrap());
    assert_eq!(cloud.cacert.as_deref(), Some("/ca"));

    let file = "clouds: {c: {auth: {auth_url: 'http://k', username: u, project_name: mine}}}";
    let mut draft = Draft::of_file(file, None, "c").unwrap();
    draft.fill(variables(&[
        ("OS_AUTH_URL", "http://other"),
        ("OS_PASSWORD", "p"),
        ("OS_USER_DOMAIN_NAME", "theirs"),
        ("OS_PROJECT_ID", "theirs"),
    ]));
    let cloud = draft.check("c").unwrap();
    assert_eq!(cloud.auth_url, "http://k");
    let Credential::Password { user, scope, .. } = cloud.credential else {
        panic!("{:?}", cloud.credential)
    };
    let domain = || DomainRef::Id("default".into());
    assert_eq!(user, UserRef::Named("u".into(), domain()));
    assert_eq!(scope, Scope::Project("mine".into(), domain()));
}
