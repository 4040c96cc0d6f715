//! `admin backup` and `admin restore`: the data directory of `up` in one file.
//!
//! A backup contains the objects of the management API, the certificate authority and the addresses, for `up` to
//! continue on another machine; kubeconfig and clouds.yaml are written at every start. The simulated cloud is included
//! only if `up` is not running: the cloud changes all the time, like a real one, and the API server cannot pause the
//! cloud for a copy.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use apiserver::OpenError;
use apiserver::backup::{self, BackupError, Contents, Files};
use http_body_util::BodyExt;
use kube::client::Body;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::cli::{Admin, Backup, Restore, ServerArgs};
use crate::connect;
use crate::data_dir::{DataDir, DataDirError};
use crate::environment::Environment;
use crate::output::{say, warn};

/// Runs the command.
pub(super) async fn execute(args: &Admin, environment: &Environment) -> anyhow::Result<()> {
    match args {
        Admin::Backup(args) => backup(args, environment, say, warn).await,
        Admin::Restore(args) => restore(args, environment, say),
    }
}

const DATABASE: &str = "management.db";
/// Files in every backup, if they exist.
const ALWAYS: [&str; 5] = [
    "version",
    "endpoints.json",
    "pki/ca.crt",
    "pki/ca.key",
    "templates",
];
/// The simulated cloud and its guests.
const CLOUD: [&str; 3] = ["cloud.db", "cloud.db-wal", "guests"];

/// Disks of the machines of a guest runner, in no backup: the disks are large, and change during a copy.
const MACHINES: &str = "machines";

/// Writes a backup of the data directory. `warn` prints the missing parts, before anything is written; `say` prints a
/// summary of the content.
pub(crate) async fn backup(
    args: &Backup,
    environment: &Environment,
    say: impl Fn(&str),
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    let data = connect::data_dir(&args.data_dir, environment)?;
    if !data.join(DATABASE).exists() {
        bail!(
            "there is nothing to back up in {}: `ferrostack up` has not run there; name its data directory with --data-dir",
            data.display()
        );
    }
    if !parent(&args.file).is_dir() {
        bail!(
            "{}: there is no directory {}",
            cannot("write", &args.file),
            parent(&args.file).display()
        );
    }
    if args.file.exists() && !args.overwrite {
        bail!("{}", is_there(&args.file));
    }
    let lock = match DataDir::open(&data) {
        Ok(lock) => Some(lock),
        Err(DataDirError::Locked { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    for missing in left_out(&data, lock.is_none(), environment) {
        warn(&missing);
    }
    let draft = beside(&args.file, ".new");
    remove(&draft)?;
    let written = write(&data, lock, &draft, environment).await;
    let contents = match written {
        Ok(contents) => contents,
        Err(error) => {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
    };
    let flags = match args.overwrite {
        true => RenameFlags::empty(),
        false => RenameFlags::NOREPLACE,
    };
    match renameat_with(CWD, &draft, CWD, &args.file, flags) {
        // Another one was written meanwhile.
        Err(Errno::EXIST) => {
            let _ = fs::remove_file(&draft);
            bail!("{}", is_there(&args.file));
        }
        renamed => renamed.with_context(|| cannot("write", &args.file))?,
    }
    sync(parent(&args.file))?;
    say(&format!("{}: {}", args.file.display(), summary(&contents)));
    Ok(())
}

fn is_there(file: &Path) -> String {
    format!(
        "{} is there already: name another file, or replace it with --overwrite",
        file.display()
    )
}

/// Parts missing in a backup of the data directory, and the consequences after a restore.
fn left_out(data: &Path, running: bool, environment: &Environment) -> Vec<String> {
    let mut missing = Vec::new();
    if running && data.join(CLOUD[0]).exists() {
        missing.push(format!(
            "the simulated cloud is not in this backup, since `up` runs: after a restore its clusters find an empty cloud, and \
             do not run. For a backup that can be continued, stop it first: {} down{}",
            environment.program,
            connect::data_dir_flag(environment, data)
        ));
    }
    if data.join(MACHINES).exists() {
        missing.push(format!(
            "the disks of the machines of --guest-runner are not in this backup: after a restore these machines are missing, and \
             their Nodes with them. To keep the disks, copy {} while `up` does not run",
            connect::quoted(&data.join(MACHINES))
        ));
    }
    missing
}

/// Restores a backup into the data directory, completely or not at all. `say` prints a summary of the content.
pub(crate) fn restore(
    args: &Restore,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let data = connect::data_dir(&args.data_dir, environment)?;
    let occupied = is_occupied(&data)?;
    if occupied && !args.replace {
        bail!(
            "the data directory {} is not empty: choose another with --data-dir, or --replace it",
            data.display()
        );
    }
    // The lock keeps other processes from changing the data directory while it is replaced.
    let locked = match occupied {
        true => Some(DataDir::open(&data)?),
        false => None,
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent(&data))
        .with_context(|| cannot("create", parent(&data)))?;
    // A draft that was left by a killed restore is incomplete.
    let draft = beside(&data, ".restoring");
    if draft.exists() {
        fs::remove_dir_all(&draft).with_context(|| cannot("remove", &draft))?;
    }
    let contents = match build(&args.file, &draft) {
        Ok(contents) => contents,
        Err(error) => {
            let _ = fs::remove_dir_all(&draft);
            return Err(error);
        }
    };
    let kept = put_in_place(&draft, &data, occupied)?;
    drop(locked);
    say(&format!("{}: {}", data.display(), summary(&contents)));
    if let Some(kept) = kept {
        say(&format!("the previous content is in {}", kept.display()));
    }
    Ok(())
}

/// Writes a complete backup to `draft`. Without the lock, `up` is running.
async fn write(
    data: &Path,
    lock: Option<DataDir>,
    draft: &Path,
    environment: &Environment,
) -> anyhow::Result<Contents> {
    let running = lock.is_none();
    if running {
        ask_server(data, draft, environment).await?;
    }
    let (data, draft) = (data.to_owned(), draft.to_owned());
    let complete = move || -> anyhow::Result<Contents> {
        let mut files = Files::new();
        for name in ALWAYS {
            collect(&data, Path::new(name), &mut files)?;
        }
        if !running {
            backup::copy(&data.join(DATABASE), &draft)?;
            for name in CLOUD {
                collect(&data, Path::new(name), &mut files)?;
            }
        }
        drop(lock);
        Ok(backup::complete(&draft, &files)?)
    };
    tokio::task::spawn_blocking(complete).await?
}

/// Requests a backup of the database from the running server.
async fn ask_server(data: &Path, draft: &Path, environment: &Environment) -> anyhow::Result<()> {
    let args = ServerArgs {
        kubeconfig: Some(data.join("kubeconfig")),
        ..ServerArgs::default()
    };
    let client = connect::client(&args, environment).await?;
    let request = http::Request::post(backup::PATH).body(Body::empty())?;
    let response = client.send(request).await?;
    let status = response.status();
    if !status.is_success() {
        let body = response.into_body().collect().await?.to_bytes();
        bail!(
            "the running `ferrostack up` did not return a backup: {status} {}",
            String::from_utf8_lossy(&body)
        );
    }
    let mut file = private(draft).with_context(|| cannot("write", draft))?;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.context(
            "the running `ferrostack up` closed the connection before the end of the backup",
        )?;
        if let Some(piece) = frame.data_ref() {
            file.write_all(piece)
                .with_context(|| cannot("write", draft))?;
        }
    }
    Ok(())
}

/// Adds a file, or all files under a directory, if it exists.
fn collect(data: &Path, name: &Path, files: &mut Files) -> anyhow::Result<()> {
    let path = data.join(name);
    if path.is_dir() {
        let entries = fs::read_dir(&path).with_context(|| cannot("read", &path))?;
        for entry in entries {
            let entry = entry.with_context(|| cannot("read", &path))?;
            collect(data, &name.join(entry.file_name()), files)?;
        }
        return Ok(());
    }
    match fs::read(&path) {
        Ok(content) => {
            files.insert(name.to_string_lossy().into_owned(), content);
            Ok(())
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(source).with_context(|| cannot("read", &path)),
    }
}

/// True if the directory contains anything except the lock file of an earlier run.
fn is_occupied(data: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(data) {
        Ok(entries) => {
            let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
            let names = names.with_context(|| cannot("read", data))?;
            Ok(names.iter().any(|name| name != "lock"))
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(source).with_context(|| cannot("read", data)),
    }
}

/// Builds a complete data directory at `draft`; the [`Contents`] are synced to disk on return.
fn build(file: &Path, draft: &Path) -> anyhow::Result<Contents> {
    let make = |path: &Path| {
        let created = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        created.with_context(|| cannot("create", path))
    };
    make(draft)?;
    let contents = backup::restore(file, &draft.join(DATABASE)).map_err(|error| match error {
        BackupError::Open(OpenError::Foreign { .. } | OpenError::Damaged { .. }) => {
            let why = match error {
                BackupError::Open(OpenError::Damaged { problem, .. }) => format!(" ({problem})"),
                _ => String::new(),
            };
            anyhow::anyhow!(
                "{} is not a backup, or a damaged one{why}; `admin backup` writes them",
                file.display()
            )
        }
        other => other.into(),
    })?;
    for (name, content) in &contents.files {
        let name = Path::new(name);
        let plain = name
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !plain || name == Path::new(DATABASE) {
            bail!(
                "{} is not a backup of a data directory: it contains a file {}",
                file.display(),
                name.display()
            );
        }
        let path = draft.join(name);
        make(parent(&path))?;
        let written = private(&path).and_then(|mut out| {
            out.write_all(content)?;
            out.sync_all()
        });
        written.with_context(|| cannot("write", &path))?;
        sync(parent(&path))?;
    }
    sync(draft)?;
    Ok(contents)
}

/// Atomically moves `draft` to `data`. Returns the path to which the previous content was moved.
fn put_in_place(draft: &Path, data: &Path, occupied: bool) -> anyhow::Result<Option<PathBuf>> {
    if !occupied {
        let _ = fs::remove_file(data.join("lock"));
        fs::rename(draft, data).with_context(|| cannot("create", data))?;
        sync(parent(data))?;
        return Ok(None);
    }
    renameat_with(CWD, draft, CWD, data, RenameFlags::EXCHANGE)
        .with_context(|| cannot("replace", data))?;
    let mut kept = beside(data, ".before-restore");
    let mut number = 2;
    while kept.exists() {
        kept = beside(data, &format!(".before-restore-{number}"));
        number += 1;
    }
    fs::rename(draft, &kept).with_context(|| cannot("rename", draft))?;
    sync(parent(data))?;
    Ok(Some(kept))
}

fn summary(contents: &Contents) -> String {
    let cloud = contents.files.contains_key(CLOUD[0]);
    format!(
        "{} objects at revision {}{}{}",
        contents.objects,
        contents.revision,
        if contents.files.contains_key("pki/ca.key") {
            ", the authority of the management API"
        } else {
            ""
        },
        if cloud { ", the simulated cloud" } else { "" }
    )
}

/// Creates a [`File`] readable by its owner only.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(source).with_context(|| cannot("replace", path))
        }
        _ => Ok(()),
    }
}

/// Syncs the entries of a directory to disk.
fn sync(directory: &Path) -> anyhow::Result<()> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.with_context(|| cannot("write", directory))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `path` with `suffix` appended to its last component.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn cannot(action: &str, path: &Path) -> String {
    format!("cannot {action} {}", path.display())
}
