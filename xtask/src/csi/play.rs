//! Play of a [`Group`] of requests on a new cloud.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use grpc::{Code, Error};
use serde_json::{Value, json};

use super::ask::{self, Contexts};
use super::disks::Disks;
use super::driver::{Driver, Half, Program};
use super::script::{Call, Group, Step};
use super::world::World;
use crate::differences::Played;
use crate::differences::names::Names;

/// Timeout of a request; no request of the script waits long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Duration above which a request is reported, since it delays all others.
const SLOW: Duration = Duration::from_secs(10);

/// Pause before a repetition.
const PAUSE: Duration = Duration::from_millis(100);

/// Plays the group to two drivers, possibly of the same program.
pub(super) async fn play(
    group: &Group,
    cloud: &Path,
    programs: [&Program; 2],
    seed: u32,
) -> anyhow::Result<Played> {
    let mut arguments = vec!["--seed".to_owned(), seed.to_string()];
    for zone in &group.zones {
        arguments.extend(["--volume-zone".to_owned(), zone.clone()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut world = World::open(cloud, &arguments)?;
    let mut names = Names::default();
    names.insert("dir", &world.directory().to_string_lossy());
    names.insert("project", &world.client(false).project());
    names.insert("admin-project", &world.client(true).project());
    names.insert("absent", "00000000-0000-4000-8000-000000000000");
    for number in 0..group.servers {
        let name = format!("node-{number}");
        let id = world.server(&name)?;
        names.insert(&name, &id);
    }
    let disks = match group.nodes {
        true => Some(Disks::new(&world, &names.resolve("$node-0")?)?),
        false => None,
    };
    let mut play = Play {
        drivers: start(group, &world, programs, Half::Controller).await?,
        nodes: match group.nodes {
            true => start(group, &world, programs, Half::Node).await?,
            false => Vec::new(),
        },
        disks,
        world,
        names,
        contexts: BTreeMap::new(),
    };
    let (mut answers, mut words) = (Vec::new(), BTreeMap::new());
    for step in &group.steps {
        let begun = Instant::now();
        let answered = play.step(step).await;
        if begun.elapsed() > SLOW {
            let (name, seconds) = (programs[0].name(), begun.elapsed().as_secs_f64());
            crate::report(&format!(
                "{}: {} ({name} first): {seconds:.0} s",
                group.name, step.is
            ));
        }
        let answered = answered.with_context(|| format!("{}: {}", group.name, step.is))?;
        if let Some((answer, refusal)) = answered {
            answers.push((step.is.clone(), answer));
            words.insert(step.is.clone(), refusal);
        }
    }
    let left = play.left()?;
    Ok(Played {
        answers,
        words,
        left,
    })
}

async fn start(
    group: &Group,
    world: &World,
    programs: [&Program; 2],
    half: Half,
) -> anyhow::Result<Vec<Driver>> {
    let mut drivers = Vec::new();
    for (number, program) in programs.into_iter().enumerate() {
        if number == 0 || group.handed_over {
            let name = format!("{half:?}-{number}");
            drivers.push(Driver::start(program, half, world, &name, PATIENCE).await?);
        }
    }
    Ok(drivers)
}

/// Sorts lists of an answer that the drivers sort by id or by time.
fn sort(answer: &mut Value) {
    let Value::Object(fields) = answer else {
        return;
    };
    for (key, value) in fields {
        let Some(items) = value.as_array_mut() else {
            continue;
        };
        items.iter_mut().for_each(sort);
        if matches!(key.as_str(), "entries" | "nodes") {
            items.sort_by_key(Value::to_string);
        }
    }
}

/// True if a sidecar would repeat the request.
fn is_open(answered: &Result<Value, Error>) -> bool {
    match answered {
        Ok(answer) => answer["ready"] == false,
        Err(Error::Status(status)) => matches!(status.code, Code::Aborted | Code::Unavailable),
        Err(_) => false,
    }
}

struct Play {
    drivers: Vec<Driver>,
    nodes: Vec<Driver>,
    disks: Option<Disks>,
    world: World,
    names: Names,
    /// [`Contexts`] by volume id.
    contexts: BTreeMap<String, Contexts>,
}

impl Play {
    /// Plays a [`Step`]: the compared answer, and the message of a refusal; `None` for a request to the cloud.
    async fn step(&mut self, step: &Step) -> anyhow::Result<Option<(Value, String)>> {
        let resolved = self.resolved(step)?;
        if step.call == Call::Cloud {
            self.cloud(&resolved)?;
            return Ok(None);
        }
        let drivers = match step.call.is_of_node() {
            true => {
                if let Some(disks) = &mut self.disks {
                    disks.follow(&mut self.world)?;
                }
                &self.nodes
            }
            false => &self.drivers,
        };
        let driver = drivers
            .get(usize::from(step.second))
            .context("the driver")?;
        let contexts = self
            .contexts
            .get(&resolved.volume)
            .cloned()
            .unwrap_or_default();
        let mut answered = ask::ask(driver.client(), &resolved, &contexts).await;
        let begun = Instant::now();
        while step.repeated && is_open(&answered) && begun.elapsed() < PATIENCE {
            tokio::time::sleep(PAUSE).await;
            answered = ask::ask(driver.client(), &resolved, &contexts).await;
        }
        let (mut answer, code, words) = match answered {
            Ok(answer) => (answer, "OK", String::new()),
            Err(Error::Status(status)) => (Value::Null, status.code.name(), status.message),
            Err(Error::Timeout(_)) => (Value::Null, "no answer", String::new()),
            Err(error) => return Err(error.into()),
        };
        self.keep(&resolved, &answer)?;
        answer = self.names.hide(answer);
        sort(&mut answer);
        let words = self.names.hide(Value::String(words));
        let words = words.as_str().unwrap_or_default().to_owned();
        Ok(Some((json!({"code": code, "answer": answer}), words)))
    }

    fn resolved(&self, step: &Step) -> anyhow::Result<Step> {
        let mut step = step.clone();
        for field in [
            &mut step.volume,
            &mut step.node,
            &mut step.snapshot,
            &mut step.token,
            &mut step.staging,
            &mut step.target,
            &mut step.path,
        ] {
            *field = self.names.resolve(field)?;
        }
        for field in [&mut step.from_volume, &mut step.from_snapshot]
            .into_iter()
            .flatten()
        {
            *field = self.names.resolve(field)?;
        }
        if let Some(body) = &mut step.body {
            *body = self.names.resolve_all(body)?;
        }
        for path in [&mut step.staging, &mut step.target] {
            if !path.is_empty() && !path.starts_with('/') {
                *path = format!("{}/{path}", self.world.directory().display());
            }
        }
        Ok(step)
    }

    /// Keeps parts of an answer for later steps.
    fn keep(&mut self, step: &Step, answer: &Value) -> anyhow::Result<()> {
        let id = answer["id"].as_str();
        if let (Some(name), Some(id)) = (&step.keep, id) {
            self.names.insert(name, id);
        }
        let context = || serde_json::from_value(answer["context"].clone());
        match (step.call, id) {
            (Call::CreateVolume, Some(id)) => {
                self.contexts.entry(id.to_owned()).or_default().volume = context()?;
            }
            (Call::ControllerPublishVolume, _) if answer.get("context").is_some() => {
                self.contexts
                    .entry(step.volume.clone())
                    .or_default()
                    .publish = context()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Sends a request to the cloud.
    fn cloud(&mut self, step: &Step) -> anyhow::Result<()> {
        let begun = Instant::now();
        let client = self.world.client(step.admin);
        let body = loop {
            let (status, _, body) =
                client.exchange(&step.method, &step.path, step.body.as_ref())?;
            let is_wanted = match step.until {
                Some(wanted) => status == wanted,
                None => (200..300).contains(&status),
            };
            if is_wanted {
                break body;
            }
            if step.until.is_none() || begun.elapsed() > PATIENCE {
                bail!(
                    "{} {}: {status} {}",
                    step.method,
                    step.path,
                    String::from_utf8_lossy(&body)
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if let Some(name) = &step.keep {
            let answer: Value = serde_json::from_slice(&body)?;
            let object = answer.as_object().and_then(|it| it.values().next());
            let id = object
                .and_then(|it| it["id"].as_str())
                .context("an id in the answer")?;
            self.names.insert(name, id);
        }
        Ok(())
    }

    /// Objects left in the cloud, by name.
    fn left(&mut self) -> anyhow::Result<Value> {
        const FIELDS: &[(&str, &[&str])] = &[
            (
                "volumes",
                &[
                    "size",
                    "status",
                    "volume_type",
                    "availability_zone",
                    "description",
                    "metadata",
                    "multiattach",
                    "snapshot_id",
                    "source_volid",
                ],
            ),
            (
                "snapshots",
                &["size", "status", "description", "metadata", "volume_id"],
            ),
            (
                "backups",
                &[
                    "size",
                    "status",
                    "description",
                    "metadata",
                    "volume_id",
                    "snapshot_id",
                    "is_incremental",
                ],
            ),
        ];
        let mut left = serde_json::Map::new();
        for (kind, fields) in FIELDS {
            let mut by_name: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for object in self.world.all(kind)? {
                let kept = fields
                    .iter()
                    .map(|field| ((*field).to_owned(), object[*field].clone()));
                let mut kept: serde_json::Map<String, Value> = kept.collect();
                let servers = object["attachments"].as_array().into_iter().flatten();
                let mut servers: Vec<&Value> = servers.map(|it| &it["server_id"]).collect();
                servers.sort_by_key(|it| it.to_string());
                kept.insert("servers".to_owned(), json!(servers));
                let name = object["name"].as_str().unwrap_or_default().to_owned();
                by_name
                    .entry(name)
                    .or_default()
                    .push(self.names.hide(Value::Object(kept)));
            }
            for named in by_name.values_mut() {
                named.sort_by_key(Value::to_string);
            }
            left.insert((*kind).to_owned(), json!(by_name));
        }
        Ok(Value::Object(left))
    }
}
