//! OCI image of the program in one archive, built without a daemon and without a base image: one layer with program,
//! named libraries, certificates of authorities, and licences of everything.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::archive::gzip;
use super::builds::Program;
use super::libraries::{self, Package};
use super::tar::{Node, Tree};
use super::{VERSION, sha256};

/// User and group of the program: the usual number of images without a distribution.
const USER: u32 = 65532;
/// Directory of ca-certificates with Mozilla's list. The bundle file would also have authorities added on this machine.
const AUTHORITIES: &str = "/usr/share/ca-certificates/mozilla";
/// Package of the [`AUTHORITIES`].
const CA_CERTIFICATES: &str = "ca-certificates";
/// Directory of documents in the image.
const DOCUMENTS: &str = "usr/share/doc/ferrostack";
const MEDIA_TYPE: &str = "application/vnd.oci.image";

/// Layer of a program, and the packages of its files.
pub(super) struct Layer {
    tree: Tree,
    pub(super) packages: BTreeSet<Package>,
}

impl Layer {
    /// Layer of a [`Program`]. `documents` are file names with contents, including licences.
    pub(super) fn new(
        program: &Program,
        documents: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> anyhow::Result<Self> {
        let mut tree = Tree::default();
        tree.add("usr/bin/ferrostack", Node::program(program.content.clone()));
        tree.add("etc/passwd", Node::file(users()));
        tree.add("etc/group", Node::file(groups()));
        // Without the file, glibc uses another order of lookups than documented.
        tree.add("etc/nsswitch.conf", Node::file("hosts: files dns\n"));
        tree.add("tmp", Node::Directory { mode: 0o1777 });
        let mut packages = BTreeSet::new();
        let directory = format!("lib/{}", libraries::multiarch(program.target));
        for library in libraries::all(&program.needs, program.target)? {
            let path = match program.interpreter.as_deref() {
                Some(path) if path.ends_with(&format!("/{}", library.name)) => {
                    path.trim_start_matches('/').to_owned()
                }
                _ => format!("{directory}/{}", library.name),
            };
            tree.add(&path, Node::program(library.content));
            packages.insert(library.package);
        }
        tree.add(
            "etc/ssl/certs/ca-certificates.crt",
            Node::file(authorities(Path::new(AUTHORITIES))?),
        );
        packages.insert(libraries::package(CA_CERTIFICATES)?);
        for package in &packages {
            let path = format!("usr/share/doc/{}/copyright", package.name);
            tree.add(&path, Node::file(package.copyright()?));
        }
        for (name, content) in documents {
            tree.add(&format!("{DOCUMENTS}/{name}"), Node::file(content));
        }
        Ok(Self { tree, packages })
    }

    /// Adds the bill of materials, which names the packages.
    pub(super) fn with_bill(mut self, bill: &str) -> Self {
        let path = format!("{DOCUMENTS}/sbom.cdx.json");
        self.tree.add(&path, Node::file(bill));
        self
    }

    /// Line for each path: mode, size in bytes, SHA-256, path.
    pub(super) fn list(&self) -> String {
        let lines = self.tree.iter().map(|(path, node)| match node {
            Node::Directory { mode } => format!("{mode:04o} - - {path}/\n"),
            Node::File { mode, content } => {
                let (size, sum) = (content.len(), sha256(content));
                format!("{mode:04o} {size} {sum} {path}\n")
            }
        });
        lines.collect()
    }

    /// Archive of the image, in the format for an import by containerd. `time` is in seconds since 1970.
    pub(super) fn archive(&self, program: &Program, time: u64) -> anyhow::Result<Vec<u8>> {
        let mut layout = Tree::default();
        let layer = self.tree.archive("", time)?;
        let compressed = gzip(&layer)?;
        let created = jiff::Timestamp::from_second(time.try_into()?)?.to_string();
        let configuration = configuration(program, &created, &sha256(&layer))?;
        let compressed = blob(&mut layout, "layer.v1.tar+gzip", compressed);
        let configuration = blob(&mut layout, "config.v1+json", text(&configuration)?);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": format!("{MEDIA_TYPE}.manifest.v1+json"),
            "config": configuration,
            "layers": [compressed],
            "annotations": annotations(program, &created),
        });
        let mut manifest = blob(&mut layout, "manifest.v1+json", text(&manifest)?);
        manifest["platform"] = json!({"architecture": architecture(program)?, "os": "linux"});
        manifest["annotations"] = json!({
            // Name under which kubelets look for `ferrostack:VERSION`.
            "io.containerd.image.name": format!("docker.io/library/ferrostack:{VERSION}"),
            "org.opencontainers.image.ref.name": VERSION,
        });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": format!("{MEDIA_TYPE}.index.v1+json"),
            "manifests": [manifest],
        });
        layout.add("index.json", Node::file(text(&index)?));
        layout.add(
            "oci-layout",
            Node::file(r#"{"imageLayoutVersion":"1.0.0"}"#),
        );
        layout.archive("", time)
    }
}

/// Adds a blob, and returns its descriptor.
fn blob(layout: &mut Tree, kind: &str, content: Vec<u8>) -> Value {
    let (digest, size) = (sha256(&content), content.len());
    layout.add(&format!("blobs/sha256/{digest}"), Node::file(content));
    json!({
        "mediaType": format!("{MEDIA_TYPE}.{kind}"),
        "digest": format!("sha256:{digest}"),
        "size": size,
    })
}

fn text(document: &Value) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::to_vec(document)?)
}

fn configuration(program: &Program, created: &str, layer: &str) -> anyhow::Result<Value> {
    Ok(json!({
        "created": created,
        "architecture": architecture(program)?,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/usr/bin/ferrostack"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/",
            "Labels": annotations(program, created),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": created, "created_by": "cargo xtask image"}],
    }))
}

/// Description of the image, as labels and as annotations.
fn annotations(program: &Program, created: &str) -> Value {
    let mut annotations = json!({
        "org.opencontainers.image.title": "ferrostack",
        "org.opencontainers.image.description": "Kubernetes on OpenStack, from one binary",
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": created,
    });
    let origin = program.origin.as_deref().unwrap_or_default();
    let mut lines = origin.lines();
    if let Some(commit) = lines.find_map(|line| line.strip_prefix("commit: ")) {
        annotations["org.opencontainers.image.revision"] = commit.into();
    }
    annotations
}

/// Architecture in the spelling of OCI.
fn architecture(program: &Program) -> anyhow::Result<&'static str> {
    let machine = program.target.split('-').next().unwrap_or_default();
    match machine {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => anyhow::bail!("images have no name for {other}"),
    }
}

fn users() -> String {
    format!(
        "root:x:0:0:root:/:/sbin/nologin\nferrostack:x:{USER}:{USER}:ferrostack:/:/sbin/nologin\n"
    )
}

fn groups() -> String {
    format!("root:x:0:\nferrostack:x:{USER}:\n")
}

/// All certificates of a directory in one file.
fn authorities(directory: &Path) -> anyhow::Result<Vec<u8>> {
    let place = directory.display();
    let listed = fs::read_dir(directory).with_context(|| {
        format!("{place}: it comes with Debian's package {CA_CERTIFICATES}: apt-get install {CA_CERTIFICATES}")
    })?;
    let mut files = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "crt") {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "{place}: there are no certificates");
    let mut all = Vec::new();
    for file in files {
        all.extend(fs::read(&file).with_context(|| file.display().to_string())?);
        if !all.ends_with(b"\n") {
            all.push(b'\n');
        }
    }
    Ok(all)
}
