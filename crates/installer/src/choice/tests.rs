use super::*;

fn flags(core: Option<&str>, rest: [&[&str]; 3]) -> Named {
    let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let [infrastructure, bootstrap, control_plane] = rest;
    Named {
        core: core.map(str::to_owned),
        infrastructure: owned(infrastructure),
        bootstrap: owned(bootstrap),
        control_plane: owned(control_plane),
        ..Named::default()
    }
}

fn theirs(providers: &[Provider]) -> BTreeMap<Provider, Installer> {
    let of = |it: &Provider| (*it, Installer::Another(it.label().to_owned()));
    providers.iter().map(of).collect()
}

fn installed_by_us(providers: &[Provider], namespace: &str) -> BTreeMap<Provider, Installer> {
    let of = |it: &Provider| {
        let installer = Installer::Ours {
            version: None,
            namespace: Some(namespace.to_owned()),
            providers: providers.iter().copied().collect(),
        };
        (*it, installer)
    };
    providers.iter().map(of).collect()
}

const GO: [Provider; 3] = [Provider::Core, Provider::Bootstrap, Provider::ControlPlane];

#[test]
fn an_empty_cluster_gets_all_providers_but_those_left_out() {
    let none = BTreeMap::new();
    let all = BTreeSet::from(Provider::ALL);
    for named in [
        flags(None, [&[], &[], &[]]),
        flags(None, [&["openstack"], &[], &[]]),
        flags(
            Some("cluster-api"),
            [&["openstack"], &["kubeadm"], &["kubeadm"]],
        ),
    ] {
        assert_eq!(of(&named, &none, "n").unwrap(), all);
    }
    let only = flags(Some("-"), [&["openstack"], &["-"], &["-"]]);
    assert_eq!(
        of(&only, &none, "n").unwrap(),
        [Provider::Infrastructure].into()
    );
    let but = flags(None, [&["-"], &[], &[]]);
    assert_eq!(of(&but, &none, "n").unwrap(), BTreeSet::from(GO));
}

#[test]
fn a_cluster_with_the_core_provider_of_another_program_gets_what_is_named() {
    let chosen = of(&flags(None, [&["openstack"], &[], &[]]), &theirs(&GO), "n");
    assert_eq!(chosen.unwrap(), [Provider::Infrastructure].into());
    let chosen = of(
        &flags(None, [&[], &["kubeadm"], &[]]),
        &theirs(&[Provider::Core]),
        "n",
    );
    assert_eq!(chosen.unwrap(), [Provider::Bootstrap].into());
    let error = of(&flags(None, [&[], &[], &[]]), &theirs(&GO), "n").unwrap_err();
    assert!(
        error.to_string().starts_with("nothing is to be installed"),
        "{error}"
    );
}

#[test]
fn a_provider_of_another_program_is_not_installed_beside_it() {
    for (named, there) in [
        (flags(None, [&[], &["kubeadm"], &[]]), theirs(&GO)),
        (flags(None, [&[], &[], &[]]), theirs(&[Provider::Bootstrap])),
    ] {
        let error = of(&named, &there, "n").unwrap_err().to_string();
        assert!(
            error.contains("would work against ours: bootstrap-kubeadm."),
            "{error}"
        );
    }
    let up = BTreeMap::from([(Provider::Core, Installer::InProcess)]);
    let error = of(&flags(None, [&[], &[], &[]]), &up, "n").unwrap_err();
    assert!(
        error.to_string().contains("of a `ferrostack up`"),
        "{error}"
    );
}

#[test]
fn what_is_installed_stays_with_its_manager() {
    let all = flags(None, [&[], &[], &[]]);
    let infrastructure = installed_by_us(&[Provider::Infrastructure], "n");
    let error = of(&all, &infrastructure, "n").unwrap_err().to_string();
    assert!(
        error.starts_with(
            "infrastructure is installed already, for a manager of infrastructure in namespace n"
        ),
        "{error}"
    );
    assert!(of(&all, &installed_by_us(&Provider::ALL, "elsewhere"), "n").is_err());
    assert!(of(&all, &installed_by_us(&Provider::ALL, "n"), "n").is_ok());
    // Beside it, another manager may run the others.
    let rest = flags(None, [&["-"], &[], &[]]);
    assert_eq!(of(&rest, &infrastructure, "n").unwrap(), BTreeSet::from(GO));
}

#[test]
fn the_names_of_our_providers_can_be_given_and_no_others() {
    for (named, message) in [
        (
            flags(None, [&["docker"], &[], &[]]),
            "--infrastructure docker",
        ),
        (
            flags(None, [&["openstack:v0.14.0"], &[], &[]]),
            "--infrastructure openstack:v0.14.0",
        ),
        (flags(None, [&[], &["rke2"], &[]]), "--bootstrap rke2"),
        (
            flags(None, [&[], &[], &["kubeadm", "-"]]),
            "--control-plane -",
        ),
    ] {
        let error = check(&named).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn providers_of_types_that_are_not_there_are_rejected_with_the_reason() {
    let name = || vec!["x".to_owned()];
    for (flags, start) in [
        (
            Named {
                ipam: name(),
                ..Named::default()
            },
            "--ipam x: ferrostack has no providers of this type: IPAddressClaims",
        ),
        (
            Named {
                runtime_extension: name(),
                ..Named::default()
            },
            "--runtime-extension x: ferrostack has no providers of this type: runtime extensions are not called",
        ),
        (
            Named {
                addon: name(),
                ..Named::default()
            },
            "--addon x: ferrostack has no providers of this type: add-ons",
        ),
    ] {
        for error in [check(&flags).unwrap_err(), named(&flags).unwrap_err()] {
            let error = error.to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }
}
