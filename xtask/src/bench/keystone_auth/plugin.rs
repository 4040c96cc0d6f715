//! Exec plugin: milliseconds of a call.

use std::process::Stdio;
use std::time::Instant;

use anyhow::bail;
use serde::Serialize;

use crate::bench::csi::percentile;
use crate::keystone::webhook::Program;
use crate::keystone::world::{World, password, token};
use crate::simulated::PASSWORD;

/// Number of calls of each kind.
const CALLS: usize = 30;

/// Medians in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    /// Call with a login.
    pub(super) not_cached: f64,
    /// Call with a token of an earlier call; `None` for the Go plugin, which has no cache.
    pub(super) cached: Option<f64>,
    /// The login within the first kind.
    pub(super) login: f64,
}

pub(super) fn measure(program: &Program, world: &mut World) -> anyhow::Result<Figures> {
    crate::report(&format!("{}: the exec plugin", program.name));
    let not_cached = calls(program, world, &[])?;
    let cached = match program.name {
        "here" => Some(calls(program, world, &["--cache"])?),
        _ => None,
    };
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let begun = Instant::now();
        token(world.admin(), &password("demo", "demo"))?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(Figures {
        not_cached,
        cached,
        login: percentile(&mut times, 0.5),
    })
}

/// Median of calls with further arguments, after a first call.
fn calls(program: &Program, world: &World, arguments: &[&str]) -> anyhow::Result<f64> {
    let home = tempfile::tempdir()?;
    let mut times = Vec::new();
    for _ in 0..=CALLS {
        let begun = Instant::now();
        let ended = program
            .plugin()
            .args(arguments)
            .env("OS_AUTH_URL", world.keystone())
            .env("OS_USERNAME", "demo")
            .env("OS_PASSWORD", PASSWORD)
            .env("OS_PROJECT_NAME", "demo")
            .env("OS_DOMAIN_NAME", "Default")
            .env("HOME", home.path())
            .env("XDG_CACHE_HOME", home.path().join("cache"))
            .stdin(Stdio::null())
            .output()?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        if !ended.status.success() {
            bail!(
                "{}: {}",
                program.name,
                String::from_utf8_lossy(&ended.stderr)
            );
        }
    }
    Ok(percentile(&mut times[1..], 0.5))
}
