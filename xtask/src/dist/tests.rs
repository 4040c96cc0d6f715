use std::collections::BTreeSet;
use std::io::Read as _;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::linked::host;
use crate::root;

/// A program that writes documents as `ferrostack` does, and the directory that it is in.
fn fake(version: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("fake.rs");
    let text = r#"
        fn main() {
            let arguments: Vec<String> = std::env::args().skip(1).collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match arguments[..] {
                ["version", "--client"] => println!("ferrostack VERSION"),
                ["completion", shell] => println!("completions for {shell}"),
                ["man", directory] => {
                    for page in ["ferrostack-up.1", "ferrostack.1"] {
                        std::fs::write(format!("{directory}/{page}"), page).unwrap();
                    }
                }
                ["generate", "repository", directory] => {
                    for (provider, file) in [
                        ("cluster-api", "core-components.yaml"),
                        ("infrastructure-openstack", "infrastructure-components.yaml"),
                    ] {
                        let place = format!("{directory}/{provider}/vVERSION");
                        std::fs::create_dir_all(&place).unwrap();
                        for file in [file, "metadata.yaml"] {
                            std::fs::write(format!("{place}/{file}"), file).unwrap();
                        }
                    }
                    std::fs::write(format!("{directory}/clusterctl.yaml"), directory).unwrap();
                }
                ["generate", "chart", directory] => {
                    std::fs::create_dir_all(format!("{directory}/templates/crds")).unwrap();
                    let chart = "name: ferrostack\nversion: VERSION\n";
                    for (file, text) in [("Chart.yaml", chart), ("templates/crds/a.yaml", "a\n")] {
                        std::fs::write(format!("{directory}/{file}"), text).unwrap();
                    }
                }
                _ => std::process::exit(2),
            }
        }
    "#;
    fs::write(&source, text.replace("VERSION", version)).unwrap();
    let program = directory.path().join("fake");
    let mut rustc = Command::new("rustc");
    rustc
        .current_dir(root())
        .arg(&source)
        .arg("-o")
        .arg(&program);
    linked::output(&mut rustc).unwrap();
    (directory, program)
}

/// True where images and packages cannot be made, after a record of it.
fn lacks_dpkg() -> bool {
    let missing = Command::new("dpkg-query")
        .arg("--version")
        .output()
        .is_err();
    if missing {
        skipped::because("images and packages are made where dpkg is");
    }
    missing
}

/// Writes a release with that program.
fn release(program: &Path) -> TempDir {
    let output = tempfile::tempdir().unwrap();
    let arguments = Arguments {
        target: Vec::new(),
        binary: Some(program.to_owned()),
        output: output.path().to_owned(),
    };
    run(&root(), &arguments).unwrap();
    output
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_release_has_sums_of_all_files_and_the_same_program_gives_the_same_bytes() {
    if lacks_dpkg() {
        return;
    }
    let (_directory, program) = fake(VERSION);
    let target = host().unwrap();
    let name = format!("ferrostack-{VERSION}-{target}");
    let [first, second] = [release(&program), release(&program)];
    let archive = format!("{name}.tar.gz");
    let bill = format!("{name}.cdx.json");
    let clusterctl = [
        "core-components.yaml",
        "infrastructure-components.yaml",
        "metadata.yaml",
    ];
    let mut all = vec!["SHA256SUMS".to_owned(), bill.clone(), archive.clone()];
    all.extend(["oci.cdx.json", "oci.files", "oci.tar"].map(|end| format!("{name}.{end}")));
    all.push(deb::name(&builds::given(&program).unwrap()).unwrap());
    all.extend(clusterctl.map(str::to_owned));
    let chart = format!("ferrostack-{VERSION}.tgz");
    all.push(chart.clone());
    all.sort();
    assert_eq!(names(first.path()), all);
    for file in names(first.path()) {
        let read = |release: &TempDir| fs::read(release.path().join(&file)).unwrap();
        assert!(read(&first) == read(&second), "{file}");
    }
    let mut check = Command::new("sha256sum");
    check
        .args(["--check", "SHA256SUMS"])
        .current_dir(first.path());
    let checked = linked::output(&mut check).unwrap();
    all.retain(|name| name != "SHA256SUMS");
    let expected: String = all.iter().map(|name| format!("{name}: OK\n")).collect();
    assert_eq!(checked, expected);

    let of_chart = unpacked(&first.path().join(&chart), &[]);
    let read = |file: &str| fs::read_to_string(of_chart.path().join(file)).unwrap();
    let described = format!("name: ferrostack\nversion: {VERSION}\n");
    assert_eq!(read("ferrostack/Chart.yaml"), described);
    assert_eq!(read("ferrostack/templates/crds/a.yaml"), "a\n");

    let archive = first.path().join(&archive);
    let tar = |arguments: &[&str]| {
        let mut tar = Command::new("tar");
        linked::output(
            tar.args(arguments)
                .arg("--file")
                .arg(&archive)
                .env("TZ", "UTC"),
        )
        .unwrap()
    };
    let time = jiff::Timestamp::from_second(time(&root()).unwrap() as i64).unwrap();
    let time = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let listed = tar(&[
        "--list",
        "--gzip",
        "--verbose",
        "--full-time",
        "--numeric-owner",
    ]);
    // Mode, owner, size, date, time, path.
    let files: Vec<(String, String)> = listed
        .lines()
        .filter(|line| !line.starts_with('d'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[1], "0/0", "{line}");
            assert_eq!(words[3..5].join(" "), time, "{line}");
            (words[0].to_owned(), words[5].to_owned())
        })
        .collect();
    let expected = [
        "CHANGELOG.md",
        "COPYRIGHT-rust-library.html",
        "LICENSE",
        "README.md",
        "RELEASE",
        "THIRD_PARTY_NOTICES",
        "completions/_ferrostack",
        "completions/ferrostack.bash",
        "completions/ferrostack.fish",
        "ferrostack",
        "man/man1/ferrostack-up.1",
        "man/man1/ferrostack.1",
    ];
    let expected = expected.map(|file| {
        let mode = match file {
            "ferrostack" => "-rwxr-xr-x",
            _ => "-rw-r--r--",
        };
        (mode.to_owned(), format!("{name}/{file}"))
    });
    assert_eq!(files, expected);

    let unpacked = tempfile::tempdir().unwrap();
    let place = unpacked.path().to_str().unwrap();
    tar(&["--extract", "--gzip", "--directory", place]);
    let content = |file: &str| fs::read(unpacked.path().join(&name).join(file)).unwrap();
    let text = |file: &str| String::from_utf8(content(file)).unwrap();
    assert!(content("ferrostack") == fs::read(&program).unwrap());
    assert_eq!(text("completions/_ferrostack"), "completions for zsh\n");
    assert!(text("THIRD_PARTY_NOTICES").contains(&target));
    let facts = text("RELEASE");
    let start = format!("ferrostack {VERSION}\ntarget: {target}\nlinked ");
    assert!(facts.starts_with(&start), "{facts}");
    assert!(facts.contains("needs glibc 2."), "{facts}");
    assert!(facts.contains("libc.so.6"), "{facts}");
}

#[test]
fn the_bill_of_materials_is_what_cargo_lock_pins_of_what_is_linked() {
    if lacks_dpkg() {
        return;
    }
    let (_directory, program) = fake(VERSION);
    let release = release(&program);
    let target = host().unwrap();
    let file = format!("ferrostack-{VERSION}-{target}.cdx.json");
    let bill = fs::read(release.path().join(file)).unwrap();
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    let text = |value: &Value, pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let sums = linked::checksums(&lock);
    let components = bill["components"].as_array().unwrap();
    let mut found = BTreeSet::new();
    for component in components {
        assert_ne!(text(component, "/licenses/0/expression"), "", "{component}");
        let id = linked::Id {
            name: text(component, "/name"),
            version: text(component, "/version"),
        };
        if text(component, "/purl").starts_with("pkg:cargo/") {
            let sum = text(component, "/hashes/0/content");
            assert_eq!(Some(&sum), sums.get(&id), "{component}");
        }
        found.insert(id.name);
    }
    let crates = linked::crates(&root(), &target).unwrap();
    for krate in &crates {
        let name = &krate.id.name;
        assert!(found.contains(name) || name == "ferrostack", "{name}");
    }
    // Beside the crates, of which one is the program: two libraries in C and that of Rust.
    assert_eq!(components.len(), crates.len() + 2);
    for name in ["sqlite", "jemalloc", "rust-std"] {
        assert!(found.contains(name), "{name}");
    }
    let subject = &bill["metadata"]["component"];
    let sum = sha256(&fs::read(&program).unwrap());
    assert_eq!(text(subject, "/hashes/0/content"), sum);
    assert!(
        text(subject, "/properties/1/value").starts_with("2."),
        "{subject}"
    );
    every_reference_is_a_component(&bill);
}

/// Unpacks an archive with another program than the one that packed it.
fn unpacked(archive: &Path, arguments: &[&str]) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.arg("--extract").args(arguments);
    tar.arg("--file").arg(archive).arg("--directory");
    linked::output(tar.arg(place.path())).unwrap();
    place
}

/// A blob of a layout, whose size and digest are those of its descriptor.
fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    let sum = digest.strip_prefix("sha256:").unwrap();
    let content = fs::read(layout.join("blobs/sha256").join(sum)).unwrap();
    assert_eq!(sha256(&content), sum);
    assert_eq!(descriptor["size"], content.len());
    content
}

#[test]
fn an_image_is_one_layer_of_what_is_in_its_list_with_the_program_of_nobody() {
    if lacks_dpkg() {
        return;
    }
    let (_directory, program) = fake(VERSION);
    let release = release(&program);
    let name = format!("ferrostack-{VERSION}-{}.oci", host().unwrap());
    let layout = unpacked(&release.path().join(format!("{name}.tar")), &[]);
    let json = |content: &[u8]| -> Value { serde_json::from_slice(content).unwrap() };
    let read = |file: &str| json(&fs::read(layout.path().join(file)).unwrap());
    assert_eq!(read("oci-layout")["imageLayoutVersion"], "1.0.0");
    let index = read("index.json");
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1);
    let descriptor = &index["manifests"][0];
    let tagged = &descriptor["annotations"]["io.containerd.image.name"];
    assert_eq!(tagged, &format!("docker.io/library/ferrostack:{VERSION}"));
    let manifest = json(&blob(layout.path(), descriptor));
    assert_eq!(manifest["mediaType"], descriptor["mediaType"]);
    let configuration = json(&blob(layout.path(), &manifest["config"]));
    assert_eq!(configuration["config"]["User"], "65532:65532");
    let labels = &configuration["config"]["Labels"];
    assert_eq!(labels["org.opencontainers.image.version"], VERSION);
    for key in ["os", "architecture"] {
        assert_eq!(configuration[key], descriptor["platform"][key]);
    }
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let layer = blob(layout.path(), &layers[0]);
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(layer.as_slice())
        .read_to_end(&mut content)
        .unwrap();
    let different = format!("sha256:{}", sha256(&content));
    assert_eq!(
        configuration["rootfs"]["diff_ids"],
        serde_json::json!([different])
    );
    // Every blob is referred to.
    let blobs = fs::read_dir(layout.path().join("blobs/sha256")).unwrap();
    assert_eq!(blobs.count(), 3);

    let archive = layout.path().join("layer.tar");
    fs::write(&archive, content).unwrap();
    let files = unpacked(&archive, &[]);
    let list = fs::read_to_string(release.path().join(format!("{name}.files"))).unwrap();
    let mut paths = BTreeSet::new();
    for line in list.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let path = files.path().join(words[3]);
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.is_dir() || metadata.is_file(), "{line}");
        if metadata.is_file() {
            assert_eq!(sha256(&fs::read(&path).unwrap()), words[2], "{line}");
        }
        // Nothing in it can be written by its user, or runs as another one.
        let mode = u32::from_str_radix(words[0], 8).unwrap();
        assert!(mode & 0o7022 == 0 || words[3] == "tmp/", "{line}");
        paths.insert(words[3].to_owned());
    }
    let bill =
        json(&fs::read(files.path().join("usr/share/doc/ferrostack/sbom.cdx.json")).unwrap());
    every_reference_is_a_component(&bill);
    let components = bill["components"].as_array().unwrap();
    let packages = components.iter().filter(|it| {
        let url = it["purl"].as_str();
        url.is_some_and(|url| url.starts_with("pkg:deb/"))
    });
    let mut count = 0;
    for package in packages {
        let copyright = format!(
            "usr/share/doc/{}/copyright",
            package["name"].as_str().unwrap()
        );
        assert!(paths.contains(&copyright), "{copyright}");
        count += 1;
    }
    assert!(count >= 2, "{components:?}");
    assert!(paths.contains("etc/ssl/certs/ca-certificates.crt"));
    runs_as_nobody(files.path());
}

/// The program finds all of its libraries in the image.
fn runs_as_nobody(root: &Path) {
    let mut run = Command::new("chroot");
    run.arg("--userspec=65532:65532").arg(root);
    run.args(["/usr/bin/ferrostack", "version", "--client"]);
    // The path of the tests has libraries of the compiler.
    run.env_remove("LD_LIBRARY_PATH");
    if !rustix::process::getuid().is_root() {
        skipped::because("the program of an image is started by root alone");
        return;
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(root, mode).unwrap();
    let output = linked::output(&mut run).unwrap();
    assert_eq!(output, format!("ferrostack {VERSION}\n"));
}

#[test]
fn a_package_has_program_pages_completions_and_units() {
    if lacks_dpkg() {
        return;
    }
    let (_directory, program) = fake(VERSION);
    let release = release(&program);
    let given = builds::given(&program).unwrap();
    let package = release.path().join(deb::name(&given).unwrap());
    let deb = |arguments: &[&str]| {
        let mut deb = Command::new("dpkg-deb");
        linked::output(deb.args(arguments).arg(&package)).unwrap()
    };
    let fields = deb(&["--field"]);
    for field in [
        "Package: ferrostack",
        &format!("Version: {VERSION}"),
        "Architecture: ",
    ] {
        assert!(fields.contains(field), "{fields}");
    }
    assert!(fields.contains("Depends: libc6 (>= 2."), "{fields}");
    let contents = deb(&["--contents"]);
    let files: Vec<&str> = contents
        .lines()
        .filter(|line| !line.starts_with('d'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[1], "root/root", "{line}");
            words[5]
        })
        .collect();
    assert_eq!(
        files,
        [
            "./usr/bin/ferrostack",
            "./usr/lib/systemd/system/ferrostack-cloud-controller-manager.service",
            "./usr/lib/systemd/system/ferrostack-manager.service",
            "./usr/lib/systemd/system/ferrostack-up.service",
            "./usr/share/bash-completion/completions/ferrostack",
            "./usr/share/doc/ferrostack/COPYRIGHT-rust-library.html.gz",
            "./usr/share/doc/ferrostack/README.md",
            "./usr/share/doc/ferrostack/RELEASE",
            "./usr/share/doc/ferrostack/THIRD_PARTY_NOTICES.gz",
            "./usr/share/doc/ferrostack/changelog.gz",
            "./usr/share/doc/ferrostack/copyright",
            "./usr/share/fish/vendor_completions.d/ferrostack.fish",
            "./usr/share/man/man1/ferrostack-up.1.gz",
            "./usr/share/man/man1/ferrostack.1.gz",
            "./usr/share/zsh/vendor-completions/_ferrostack",
        ]
    );
    let place = tempfile::tempdir().unwrap();
    let mut extract = Command::new("dpkg-deb");
    extract.arg("--raw-extract").arg(&package).arg(place.path());
    linked::output(&mut extract).unwrap();
    for script in ["postinst", "prerm", "postrm"] {
        let mut sh = Command::new("sh");
        sh.arg("-n").arg(place.path().join("DEBIAN").join(script));
        linked::output(&mut sh).unwrap();
    }
}

#[test]
fn units_are_hardened() {
    for (name, text) in deb::UNITS {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        fs::write(&file, text).unwrap();
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=yes", "--threshold=13", "--no-pager"]);
        match analyze.arg(&file).output() {
            // Exposure from 0 to 100.
            Ok(output) => assert!(
                output.status.success(),
                "{name}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
            Err(error) => skipped::because(format!("systemd-analyze: {error}")),
        }
    }
}

fn every_reference_is_a_component(bill: &Value) {
    let reference = |component: &Value| component["bom-ref"].as_str().unwrap().to_owned();
    let components = bill["components"].as_array().unwrap();
    let mut known: BTreeSet<String> = components.iter().map(reference).collect();
    assert_eq!(known.len(), components.len(), "references are unique");
    known.insert(reference(&bill["metadata"]["component"]));
    for dependency in bill["dependencies"].as_array().unwrap() {
        for name in dependency["dependsOn"].as_array().unwrap() {
            assert!(known.contains(name.as_str().unwrap()), "{name}");
        }
    }
}

#[test]
fn a_program_of_another_version_is_refused() {
    let (_directory, program) = fake("0.0.9");
    let error = documents::of(&program).unwrap_err().to_string();
    assert!(
        error.ends_with(&format!(
            "is ferrostack 0.0.9, and the release is {VERSION}"
        )),
        "{error}"
    );
}

#[test]
fn a_target_that_cannot_be_built_for_is_an_error_where_it_is_asked_for() {
    let Err(error) = builds::all(&root(), &["riscv64gc-unknown-linux-gnu".to_owned()]) else {
        panic!("it is no target of a release");
    };
    let error = error.to_string();
    assert!(error.contains("no target of a release"), "{error}");
    assert!(error.contains("aarch64-unknown-linux-gnu"), "{error}");
}
