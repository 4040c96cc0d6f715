//! Linker options of the binary, and the pages of docs/ that are in it.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The pages, from the package's directory.
const DOCS: &str = "../../docs";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    // Functions of different types often have the same code, of which LLD keeps one. It is the linker of this target in
    // Rust's releases; others do not know the option.
    let target = env::var("TARGET").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && target == "x86_64-unknown-linux-gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    fs::write(Path::new(&out).join("docs.z"), packed()?)?;
    Ok(())
}

/// The pages in the order of their names, each after a line with its name and its size, compressed.
fn packed() -> Result<Vec<u8>, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={DOCS}");
    let entries = fs::read_dir(DOCS)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "md"));
    files.sort();
    let mut packing = ZlibEncoder::new(Vec::new(), Compression::best());
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read(&file)?;
        writeln!(packing, "{name} {}", text.len())?;
        packing.write_all(&text)?;
    }
    Ok(packing.finish()?)
}
