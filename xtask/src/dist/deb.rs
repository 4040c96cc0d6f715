//! Debian package: the program with manual pages, completions, and disabled systemd units.

use anyhow::ensure;

use super::VERSION;
use super::archive::{Entry, gzip};
use super::builds::Program;
use super::elf::Needs;
use super::libraries;
use super::tar::{Node, Tree};

/// Units, by file name.
pub(super) const UNITS: [(&str, &str); 3] = [
    (
        "ferrostack-up.service",
        include_str!("../../../config/systemd/ferrostack-up.service"),
    ),
    (
        "ferrostack-manager.service",
        include_str!("../../../config/systemd/ferrostack-manager.service"),
    ),
    (
        "ferrostack-cloud-controller-manager.service",
        include_str!("../../../config/systemd/ferrostack-cloud-controller-manager.service"),
    ),
];
/// Completions in an archive of a release, and their paths for the shells of Debian.
const COMPLETIONS: [(&str, &str); 3] = [
    (
        "completions/ferrostack.bash",
        "usr/share/bash-completion/completions/ferrostack",
    ),
    (
        "completions/ferrostack.fish",
        "usr/share/fish/vendor_completions.d/ferrostack.fish",
    ),
    (
        "completions/_ferrostack",
        "usr/share/zsh/vendor-completions/_ferrostack",
    ),
];
const DOCUMENTS: &str = "usr/share/doc/ferrostack";
/// Documents of an archive that are short enough to stay uncompressed in a package.
const PLAIN: [&str; 2] = ["README.md", "RELEASE"];

/// Script of the package: an upgrade restarts running units, a removal stops them first. Stored data stay.
const AFTER_INSTALLATION: &str = r#"#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -n "$2" ]; then
		systemctl try-restart 'ferrostack-*.service' || true
	fi
fi
"#;
const BEFORE_REMOVAL: &str = r#"#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	for unit in UNITS; do
		systemctl disable --now "$unit" || true
	done
fi
"#;
const AFTER_REMOVAL: &str = r#"#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
"#;

/// Name of the package file.
pub(super) fn name(program: &Program) -> anyhow::Result<String> {
    Ok(format!(
        "ferrostack_{VERSION}_{}.deb",
        architecture(program.target)?
    ))
}

/// Package of a [`Program`]; `entries` are from the archive of the release. `time` is in seconds since 1970.
pub(super) fn package(program: &Program, entries: &[Entry], time: u64) -> anyhow::Result<Vec<u8>> {
    let data = data(entries)?;
    let size: usize = data
        .iter()
        .map(|(_, node)| match node {
            Node::File { content, .. } => content.len().div_ceil(1024),
            Node::Directory { .. } => 1,
        })
        .sum();
    let mut control = Tree::default();
    control.add("control", Node::file(fields(program, size)?));
    control.add("postinst", Node::program(AFTER_INSTALLATION));
    let units: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
    let before = BEFORE_REMOVAL.replace("UNITS", &units.join(" "));
    control.add("prerm", Node::program(before));
    control.add("postrm", Node::program(AFTER_REMOVAL));
    let mut package = b"!<arch>\n".to_vec();
    member(&mut package, "debian-binary", b"2.0\n", time)?;
    let control = gzip(&control.archive("./", time)?)?;
    member(&mut package, "control.tar.gz", &control, time)?;
    let data = gzip(&data.archive("./", time)?)?;
    member(&mut package, "data.tar.gz", &data, time)?;
    Ok(package)
}

/// Installed files.
fn data(entries: &[Entry]) -> anyhow::Result<Tree> {
    let mut tree = Tree::default();
    for entry in entries {
        let (name, node) = (entry.name.as_str(), entry.node.clone());
        let completion = COMPLETIONS.iter().find(|(file, _)| *file == name);
        if let Some((_, path)) = completion {
            tree.add(path, node);
        } else if name == "ferrostack" {
            tree.add("usr/bin/ferrostack", node);
        } else if name == "LICENSE" {
            let licence = String::from_utf8_lossy(entry.content());
            let text = format!("{COPYRIGHT}\n{licence}");
            tree.add(&format!("{DOCUMENTS}/copyright"), Node::file(text));
        } else if PLAIN.contains(&name) {
            tree.add(&format!("{DOCUMENTS}/{name}"), node);
        } else {
            let path = match name.strip_prefix("man/") {
                Some(page) => format!("usr/share/man/{page}.gz"),
                None if name == "CHANGELOG.md" => format!("{DOCUMENTS}/changelog.gz"),
                None => format!("{DOCUMENTS}/{name}.gz"),
            };
            tree.add(&path, Node::file(gzip(entry.content())?));
        }
    }
    for (name, text) in UNITS {
        tree.add(&format!("usr/lib/systemd/system/{name}"), Node::file(text));
    }
    Ok(tree)
}

const COPYRIGHT: &str = "Ferrostack. The licence of its own sources follows; the licences of the crates and of the standard library that \
    are in the program are in THIRD_PARTY_NOTICES.gz and COPYRIGHT-rust-library.html.gz beside this file.\n";

/// File `control`; `size` of the installed files in KiB.
fn fields(program: &Program, size: usize) -> anyhow::Result<String> {
    Ok(format!(
        "Package: ferrostack\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: The maintainers of Ferrostack <root@localhost>\n\
         Installed-Size: {size}\n{}Recommends: ca-certificates\nSection: admin\nPriority: optional\n\
         Description: Kubernetes on OpenStack, from one binary\n \
         Controllers of Cluster API with an infrastructure provider for OpenStack,\n \
         a cloud controller manager, a Cinder CSI driver and a webhook of Keystone,\n \
         with an API server and a simulated cloud of their own.\n",
        architecture(program.target)?,
        depends(&program.needs)?,
    ))
}

/// Packages with the libraries that the program names, for the version of glibc in its symbols.
fn depends(needs: &Needs) -> anyhow::Result<String> {
    let Needs::Libraries { glibc, names } = needs else {
        return Ok(String::new());
    };
    let mut packages = vec![format!("libc6 (>= {glibc})")];
    for name in names {
        match name.as_str() {
            "libgcc_s.so.1" => packages.push("libgcc-s1".to_owned()),
            of_glibc
                if [
                    "libc.so",
                    "libm.so",
                    "ld-linux",
                    "libpthread.so",
                    "libdl.so",
                    "librt.so",
                ]
                .iter()
                .any(|start| of_glibc.starts_with(start)) => {}
            other => anyhow::bail!("no package of Debian is known for {other}"),
        }
    }
    Ok(format!("Depends: {}\n", packages.join(", ")))
}

/// Architecture in Debian's spelling.
fn architecture(target: &str) -> anyhow::Result<&'static str> {
    match libraries::multiarch(target).as_str() {
        "x86_64-linux-gnu" => Ok("amd64"),
        "aarch64-linux-gnu" => Ok("arm64"),
        other => anyhow::bail!("Debian has no name for {other}"),
    }
}

/// Adds a file to an `ar` archive.
fn member(package: &mut Vec<u8>, name: &str, content: &[u8], time: u64) -> anyhow::Result<()> {
    let size = content.len();
    let header = format!(
        "{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
        0, 0, 100_644
    );
    ensure!(header.len() == 60, "{name}: a number is too large for ar");
    package.extend_from_slice(header.as_bytes());
    package.extend_from_slice(content);
    if size % 2 == 1 {
        package.push(b'\n');
    }
    Ok(())
}
