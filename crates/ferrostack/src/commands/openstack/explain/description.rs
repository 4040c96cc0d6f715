//! Texts of the projects about their options, as packed by the build script.

use std::io::Read as _;

use deployer::{Release, Service};
use flate2::read::ZlibDecoder;

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/options.z"));
/// Sections of Glance with the options of the section `file`.
const STORES: [&str; 2] = ["os_glance_staging_store", "os_glance_tasks_store"];

/// Text about an option, if provided by the project.
pub(super) fn of(release: Release, service: Service, section: &str, name: &str) -> Option<String> {
    found(&unpacked()?, release, service, section, name)
}

fn unpacked() -> Option<String> {
    let mut packed = String::new();
    ZlibDecoder::new(PACKED).read_to_string(&mut packed).ok()?;
    Some(packed)
}

fn found(
    packed: &str,
    release: Release,
    service: Service,
    section: &str,
    name: &str,
) -> Option<String> {
    let section = match STORES.contains(&section) && service == Service::Glance {
        true => "file",
        false => section,
    };
    let digit = Release::ALL.iter().position(|it| *it == release)?;
    let wanted = format!("{} {section} {name}", service.name());
    let mut lines = packed.lines();
    lines.find(|line| {
        line.split_once(' ')
            .is_some_and(|(digits, option)| option == wanted && digits.contains(&digit.to_string()))
    })?;
    let text = lines.find(|line| line.starts_with('"'))?;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_every_release_have_the_text_of_their_project() {
        let packed = unpacked().unwrap();
        let text = |release, service, section, name| {
            found(&packed, release, service, section, name).unwrap()
        };
        for release in Release::ALL {
            let debug = text(release, Service::Nova, "DEFAULT", "debug");
            assert!(
                debug.starts_with("If set to true, the logging level"),
                "{debug}"
            );
            let (mut described, mut all) = (0, 0);
            for service in [Service::Keystone, Service::Placement] {
                for option in release.table(service).unwrap().all() {
                    all += 1;
                    let text = found(&packed, release, service, option.section, option.name);
                    described += usize::from(text.is_some_and(|text| !text.trim().is_empty()));
                }
            }
            assert!(
                described * 100 >= all * 96,
                "{release}: {described} of {all}"
            );
        }
        let staging = "os_glance_staging_store";
        let name = "filesystem_store_datadir";
        let store = text(Release::DEFAULT, Service::Glance, staging, name);
        assert!(store.contains("Directory"), "{store}");
        assert_eq!(
            of(Release::DEFAULT, Service::Nova, "DEFAULT", "nosuch"),
            None
        );
        assert!(PACKED.len() < 250_000, "{} bytes", PACKED.len());
    }
}
