//! Requirements of a program on its machine.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, bail, ensure};
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::StringTable;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionTable};
use object::{LittleEndian, SectionIndex};

/// Pseudo-version required by packed relocations, and the first version of glibc that provides it.
const RELATIVE_RELOCATIONS: (&str, [u32; 2]) = ("GLIBC_ABI_DT_RELR", [2, 36]);

type Header = FileHeader64<LittleEndian>;

/// Machine and requirements of a program.
#[derive(Debug)]
pub(super) struct Executable {
    /// Architecture as in Rust's targets.
    pub(super) machine: &'static str,
    pub(super) needs: Needs,
    /// Path of the dynamic loader, such as /lib64/ld-linux-x86-64.so.2.
    pub(super) interpreter: Option<String>,
}

/// Requirements for a program to start.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Needs {
    /// Nothing: a static program.
    Nothing,
    Libraries {
        /// Minimum version of glibc, by the versions of all called functions.
        glibc: Version,
        /// Names of shared libraries, including glibc's.
        names: BTreeSet<String>,
    },
}

/// Version of glibc, such as 2.34.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Version(Vec<u32>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("linked statically"),
            Self::Libraries { glibc, names } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                write!(
                    f,
                    "linked dynamically: needs glibc {glibc} or newer ({})",
                    names.join(", ")
                )
            }
        }
    }
}

/// Reads an ELF file as [`Executable`], for one of the machines of a release.
pub(super) fn read(file: &[u8]) -> anyhow::Result<Executable> {
    let (machine, names) = named(file)?;
    let header = Header::parse(file)?;
    let sections = header.sections(LittleEndian, file)?;
    let interpreter = interpreter(header, file)?;
    ensure!(
        interpreter.is_none() || !names.is_empty(),
        "it is linked dynamically, and the section that names its libraries was removed"
    );
    let needs = match versions(&sections, file)?.into_iter().max() {
        None if names.is_empty() => Needs::Nothing,
        None => bail!("it is linked dynamically, and not with glibc: {names:?}"),
        Some(glibc) => Needs::Libraries { glibc, names },
    };
    Ok(Executable {
        machine,
        needs,
        interpreter,
    })
}

/// Machine of a program or a library, and names of its libraries.
pub(super) fn named(file: &[u8]) -> anyhow::Result<(&'static str, BTreeSet<String>)> {
    let header = Header::parse(file).context("it is no ELF program of 64 bits")?;
    let machine = match header.e_machine(LittleEndian) {
        EM_X86_64 => "x86_64",
        EM_AARCH64 => "aarch64",
        other => bail!("its machine (number {other} of ELF) is none of a release"),
    };
    let sections = header.sections(LittleEndian, file)?;
    Ok((machine, libraries(&sections, file)?))
}

fn interpreter(header: &Header, file: &[u8]) -> anyhow::Result<Option<String>> {
    let mut segments = header.program_headers(LittleEndian, file)?.iter();
    let Some(segment) = segments.find(|it| it.p_type(LittleEndian) == PT_INTERP) else {
        return Ok(None);
    };
    let path = segment.data(LittleEndian, file);
    let path = path.map_err(|()| anyhow::anyhow!("the path of its interpreter is not in it"))?;
    let path = String::from_utf8_lossy(path);
    Ok(Some(path.trim_end_matches('\0').to_owned()))
}

/// Shared libraries that a program names.
fn libraries(sections: &SectionTable<'_, Header>, file: &[u8]) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let Some((entries, link)) = sections.dynamic(LittleEndian, file)? else {
        return Ok(names);
    };
    let strings = strings(sections, file, link)?;
    for entry in entries
        .iter()
        .filter(|entry| entry.tag(LittleEndian) == DT_NEEDED)
    {
        let name = entry.string(LittleEndian, strings)?;
        names.insert(String::from_utf8_lossy(name).into_owned());
    }
    Ok(names)
}

/// [`Version`]s of glibc of the functions that a program calls.
fn versions(sections: &SectionTable<'_, Header>, file: &[u8]) -> anyhow::Result<Vec<Version>> {
    let mut versions = Vec::new();
    let Some((mut libraries, link)) = sections.gnu_verneed(LittleEndian, file)? else {
        return Ok(versions);
    };
    let strings = strings(sections, file, link)?;
    while let Some((_, mut needed)) = libraries.next()? {
        while let Some(version) = needed.next()? {
            let name = String::from_utf8_lossy(version.name(LittleEndian, strings)?).into_owned();
            if let Some(version) = glibc(&name)? {
                versions.push(version);
            }
        }
    }
    Ok(versions)
}

/// Parses `GLIBC_2.34`. `None` for versions of other libraries, such as `GCC_3.0`.
fn glibc(name: &str) -> anyhow::Result<Option<Version>> {
    if name == RELATIVE_RELOCATIONS.0 {
        return Ok(Some(Version(RELATIVE_RELOCATIONS.1.to_vec())));
    }
    let Some(numbers) = name.strip_prefix("GLIBC_") else {
        return Ok(None);
    };
    let numbers: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
    let numbers = numbers.with_context(|| format!("{name}: not a version of glibc"))?;
    Ok(Some(Version(numbers)))
}

fn strings<'data>(
    sections: &SectionTable<'data, Header>,
    file: &'data [u8],
    link: SectionIndex,
) -> anyhow::Result<StringTable<'data>> {
    Ok(sections.strings(LittleEndian, file, link)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_compared_by_their_numbers() {
        let version = |name| glibc(name).unwrap();
        assert!(version("GLIBC_2.9") < version("GLIBC_2.34"));
        assert!(version("GLIBC_2.2.5") < version("GLIBC_2.3"));
        assert_eq!(version("GLIBC_2.2.5").unwrap().to_string(), "2.2.5");
        assert_eq!(version("GCC_3.0"), None);
        assert!(glibc("GLIBC_PRIVATE").is_err());
        assert_eq!(version("GLIBC_ABI_DT_RELR"), version("GLIBC_2.36"));
    }

    #[test]
    fn a_program_without_libraries_is_linked_statically() {
        let mut header = [0_u8; 64];
        // Magic, 64 bits, little-endian, version 1.
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        header[18] = 183;
        header[52] = 64;
        let program = read(&header).unwrap();
        assert_eq!(program.machine, "aarch64");
        assert_eq!(program.needs, Needs::Nothing);
        header[18] = 243;
        let error = read(&header).unwrap_err().to_string();
        assert!(error.contains("number 243 of ELF"), "{error}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let error = read(b"#!/bin/sh\n").unwrap_err().to_string();
        assert!(error.contains("no ELF program"), "{error}");
    }
}
